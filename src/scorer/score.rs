//! A request on its way: texts to passes, passes through the engine, statistics to scores.

use super::bound::Bound;
use super::passes::{Batch, Slot, join};
use super::result::{self, Answered};
use super::text::{GeneratedNeighbors, Prepared};
use super::{Input, MAX_DETAIL_BYTES, Scored, Scorer, ScorerError, TextResult, Usage};
use crate::engine::{Class, Output, Stats, Ticket, Work};
use crate::methods::{AuxiliaryPass, AuxiliaryPassError, LabelledMethod};
use crate::telemetry::names;
use std::sync::Arc;
use std::time::Instant;

impl Scorer {
    /// Scores all inputs as one interactive request, admitted whole or not at all.
    ///
    /// # Errors
    /// [`ScorerError`]; what is wrong with one text stands in its result instead.
    pub async fn score(
        &self,
        bound: &Arc<Bound>,
        inputs: Vec<Input>,
        deadline: Option<Instant>,
    ) -> Result<Scored, ScorerError> {
        self.score_as(bound, inputs, Class::Interactive, deadline).await
    }

    /// Scores one text behind interactive work, waiting for room as long as it takes: a part of an audit or of a file.
    /// Many may run at once, [`IN_FLIGHT`](super::IN_FLIGHT) as a rule; the engine's window bounds their tokens.
    ///
    /// # Errors
    /// As [`Scorer::score`].
    pub async fn score_behind(&self, bound: &Arc<Bound>, input: Input) -> Result<Scored, ScorerError> {
        self.score_as(bound, vec![input], Class::Batch, None).await
    }

    async fn score_as(
        &self,
        bound: &Arc<Bound>,
        inputs: Vec<Input>,
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<Scored, ScorerError> {
        let for_text = Arc::clone(bound);
        let mut prepared = self.workers.map(inputs, move |input| Prepared::new(input, &for_text)).await?;
        check_detail(bound, &prepared)?;
        let mut cost = Usage::default();
        if !bound.passes.is_empty() {
            let generated = self.generate_neighbors(bound, &prepared, class, deadline, &mut cost).await?;
            let for_text = Arc::clone(bound);
            let plan = move |(text, generated): (Prepared, Vec<GeneratedNeighbors>)| {
                text.with_auxiliary_passes(&generated, &for_text)
            };
            prepared = self.workers.map(prepared.into_iter().zip(generated).collect(), plan).await?;
        }
        let mut batch = Batch::new(bound.models.len());
        let planned: Vec<Planned> = prepared.into_iter().map(|text| Planned::new(text, &mut batch)).collect();
        let ran = self.run(bound, batch, class, deadline).await?;
        self.finish(bound, planned, ran, cost).await
    }

    /// The neighbours of every text by every generator of the methods; adds what they cost. None are made of a text that
    /// has failed already.
    async fn generate_neighbors(
        &self,
        bound: &Bound,
        prepared: &[Prepared],
        class: Class,
        deadline: Option<Instant>,
        cost: &mut Usage,
    ) -> Result<Vec<Vec<GeneratedNeighbors>>, ScorerError> {
        let mut all = vec![Vec::new(); prepared.len()];
        let sound: Vec<usize> = (0..prepared.len()).filter(|&index| prepared[index].error.is_none()).collect();
        for pass in &bound.passes {
            let AuxiliaryPass::Neighbors(Some(generator)) = pass else { continue };
            let model = bound.generators.iter().find(|model| model.id == *generator.model);
            let model = model.ok_or_else(|| {
                ScorerError::Internal(format!("the generator `{}` was not opened with the methods", generator.model))
            })?;
            let texts = sound.iter().map(|&index| prepared[index].input.text.as_str().into()).collect();
            let generated = self.neighbors(model, texts, generator.count, class, deadline).await?;
            for (&index, generated) in sound.iter().zip(generated) {
                let neighbors =
                    generated.map_err(|error| AuxiliaryPassError { code: error.code, detail: error.detail });
                all[index].push((
                    pass.clone(),
                    neighbors.map(|generated| {
                        cost.forward_passes += generated.forward_passes;
                        cost.cached_passes += generated.cached_passes;
                        generated.neighbors.into_iter().map(|neighbor| neighbor.text).collect()
                    }),
                ));
            }
        }
        Ok(all)
    }

    /// Runs every model's sequences. What one model refuses is taken back from the others.
    async fn run(
        &self,
        bound: &Bound,
        batch: Batch,
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<Vec<Output>, ScorerError> {
        let mut tickets: Vec<Ticket> = Vec::with_capacity(bound.models.len());
        for (model, sequences) in bound.models.iter().zip(batch.sequences) {
            let identity = Arc::clone(&model.identity);
            let work = Work { model: model.id.clone(), identity, sequences, class, deadline };
            let work = self.engine.recall(work).await;
            tickets.push(match class {
                Class::Interactive => self.engine.submit(work)?,
                Class::Batch => self.engine.submit_when_room(work).await?,
            });
        }
        let mut outputs = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            outputs.push(ticket.wait().await?);
        }
        Ok(outputs)
    }

    async fn finish(
        &self,
        bound: &Arc<Bound>,
        planned: Vec<Planned>,
        ran: Vec<Output>,
        cost: Usage,
    ) -> Result<Scored, ScorerError> {
        let mut usage = Usage {
            tokens: 0,
            forward_passes: cost.forward_passes + ran.iter().map(|output| output.forward_passes).sum::<usize>(),
            cached_passes: cost.cached_passes + ran.iter().map(|output| output.cached_passes).sum::<usize>(),
        };
        let answers: Arc<[Vec<Stats>]> = ran.into_iter().map(|output| output.stats).collect();
        let bound = Arc::clone(bound);
        let to_result = move |(index, planned): (usize, Planned)| {
            let answered = planned.answered(index, &answers);
            let stats = Arc::clone(&answered.stats);
            (result::build(answered, &bound), stats)
        };
        let built = self.workers.map(planned.into_iter().enumerate().collect(), to_result).await?;
        let (results, stats): (Vec<TextResult>, Vec<Stats>) = built.into_iter().unzip();
        count(&results);
        usage.tokens = results.iter().map(|result| result.scored_tokens).sum();
        Ok(Scored { results, stats, usage })
    }
}

/// A text whose passes are in a batch.
struct Planned {
    text: Prepared,
    passes: Vec<Slot>,
    auxiliary: Vec<(AuxiliaryPass, Slots)>,
}

/// Where each sequence of an auxiliary pass will be, or why there is none.
type Slots = Result<Vec<Vec<Slot>>, AuxiliaryPassError>;

impl Planned {
    fn new(mut text: Prepared, batch: &mut Batch) -> Self {
        let passes = batch.add(std::mem::take(&mut text.passes));
        let mut auxiliary = Vec::with_capacity(text.auxiliary.len());
        for (pass, sequences) in text.auxiliary.drain(..) {
            let slots = sequences.map(|sequences| sequences.into_iter().map(|one| batch.add(one)).collect());
            auxiliary.push((pass, slots));
        }
        Self { text, passes, auxiliary }
    }

    /// The text with its statistics out of the answers of all models.
    fn answered(self, index: usize, answers: &[Vec<Stats>]) -> Answered {
        let joined = |slots: Vec<Vec<Slot>>| slots.iter().map(|slots| join(slots, answers)).collect();
        let auxiliary = self.auxiliary.into_iter().map(|(pass, slots)| (pass, slots.map(joined)));
        Answered {
            index,
            stats: join(&self.passes, answers),
            auxiliary: auxiliary.collect(),
            passes: self.passes.len(),
            text: self.text,
        }
    }
}

/// Refuses an answer that would list too much.
fn check_detail(bound: &Bound, prepared: &[Prepared]) -> Result<(), ScorerError> {
    let tokens = prepared.iter().map(|text| text.ids.len()).sum::<usize>();
    // A label stands by contribution, weight and selection, two of them with a number of some twenty digits; and the
    // token's own numbers take as much as a few methods.
    let of_a_method = |method: &LabelledMethod| 3 * (method.label.len() + 4) + 48;
    let of_a_token = bound.methods.iter().map(of_a_method).sum::<usize>() + 256;
    let (methods, bytes) = (bound.methods.len(), tokens.saturating_mul(of_a_token));
    if bound.tokens && bytes > MAX_DETAIL_BYTES {
        return Err(ScorerError::TooDetailed { tokens, methods, bytes });
    }
    Ok(())
}

/// Counts texts by how many of their methods gave a score: all, some or none.
fn count(results: &[TextResult]) {
    let outcome = |result: &TextResult| match (result.errors.is_empty(), result.scores.is_empty()) {
        (true, _) => "ok",
        (false, false) => "partial",
        (false, true) => "failed",
    };
    for name in ["ok", "partial", "failed"] {
        let texts = results.iter().filter(|result| outcome(result) == name).count();
        metrics::counter!(names::TEXTS_SCORED, "outcome" => name).increment(texts as u64);
    }
}
