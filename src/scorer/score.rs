//! A request on its way: texts to passes, passes through the engine, statistics to scores.

use super::bound::Bound;
use super::error::{MAX_ANSWER_BYTES, ScorerError};
use super::handle::{MOST_BATCH_KIB, Scorer};
use super::result::{self, TextResult, Usage};
use super::text::{GeneratedNeighbors, Input, PreparedText};
use super::workers::TextWork;
use crate::access::RequestMemory;
use crate::engine::{Class, PendingRequest, Request, Stats};
use crate::telemetry::names;
use mia::methods::{AuxiliaryPass, AuxiliaryPassError};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The results of a request, in the order of its inputs.
pub struct Scored {
    pub results: Vec<TextResult>,
    /// Statistics of each text's scored tokens; empty if it could not be run.
    pub stats: Vec<Stats>,
    /// Ids of the same tokens.
    pub ids: Vec<Arc<[u32]>>,
    pub usage: Usage,
    pub times: ScoringTimes,
}

/// Durations of the stages of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoringTimes {
    /// Until it was tokenized, and neighbours were made where a method wants some.
    pub tokenize: Duration,
    /// From then until the first forward pass began.
    pub queue: Duration,
    /// From then until the last one ended; nothing where all was in the cache.
    pub forward: Duration,
    /// Time of the methods.
    pub methods: Duration,
}

/// More bytes than a token of ordinary text has on average: what is expected of a text by its bytes is less than it has.
const MOST_BYTES_OF_A_TOKEN: usize = 8;

impl Scorer {
    /// Scores all inputs as one interactive request, admitted whole or not at all. `memory` takes the estimated size of the answer before
    /// anything is computed.
    ///
    /// # Errors
    /// [`ScorerError`]; what is wrong with one text stands in its result instead.
    pub async fn score(
        &self,
        bound: &Arc<Bound>,
        inputs: Vec<Input>,
        deadline: Option<Instant>,
        memory: &RequestMemory,
    ) -> Result<Scored, ScorerError> {
        self.score_as(bound, inputs, Class::Interactive, deadline, Some(memory)).await
    }

    /// Scores one text behind interactive work, waiting for room as long as it takes: a part of an audit or of a file.
    /// Many may run at once, [`IN_FLIGHT`](super::IN_FLIGHT) as a rule; the engine's window bounds their tokens, and all of them
    /// together have at most 16 MiB of text under way.
    pub async fn score_behind(&self, bound: &Arc<Bound>, input: Input) -> Result<Scored, ScorerError> {
        let kibibytes = u32::try_from(input.bytes() >> 10).unwrap_or(u32::MAX).clamp(1, MOST_BATCH_KIB);
        // It is never closed.
        let _share = self.batch_texts.acquire_many(kibibytes).await;
        self.score_as(bound, vec![input], Class::Batch, None, None).await
    }

    async fn score_as(
        &self,
        bound: &Arc<Bound>,
        inputs: Vec<Input>,
        class: Class,
        deadline: Option<Instant>,
        memory: Option<&RequestMemory>,
    ) -> Result<Scored, ScorerError> {
        let (for_text, texts, arrived) = (Arc::clone(bound), inputs.len(), Instant::now());
        check_answer(bound, texts, 0)?;
        let bytes = inputs.iter().map(Input::bytes).sum();
        let work = TextWork::new(class, bytes);
        let inputs =
            if class == Class::Interactive { self.expect_room(bound, inputs, deadline).await? } else { inputs };
        let mut prepared = self.workers.map(work, inputs, move |input| PreparedText::new(input, &for_text)).await?;
        let answer = check_answer(bound, texts, prepared.iter().map(|text| text.ids().len()).sum())?;
        memory.map_or(Ok(()), |memory| memory.grow_by(answer as u64))?;
        let mut cost = Usage::default();
        if !bound.passes.is_empty() {
            let generated = self.generate_neighbors(bound, &prepared, class, deadline, &mut cost).await?;
            let for_text = Arc::clone(bound);
            let plan = move |(text, generated): (PreparedText, Vec<GeneratedNeighbors>)| {
                text.with_auxiliary_passes(&generated, &for_text)
            };
            prepared = self.workers.map(work, prepared.into_iter().zip(generated).collect(), plan).await?;
        }
        let mut requests: Vec<Request> =
            bound.models.iter().map(|model| self.request(model, class, deadline)).collect();
        prepared.iter_mut().for_each(|text| text.add_to(&mut requests));
        let mut times = ScoringTimes { tokenize: arrived.elapsed(), ..ScoringTimes::default() };
        let cost = self.run(requests, cost, &mut times).await?;
        self.finish(bound, prepared, work, cost, times).await
    }

    /// The inputs, unless there is no room for them by a low estimate from their bytes: to be refused must not cost the time of
    /// tokenizing. A text that was tokenized lately needs no room, since its statistics may be in the cache.
    async fn expect_room(
        &self,
        bound: &Arc<Bound>,
        inputs: Vec<Input>,
        deadline: Option<Instant>,
    ) -> Result<Vec<Input>, ScorerError> {
        let model = Arc::clone(&bound.models[0]);
        let request = self.request(&model, Class::Interactive, deadline);
        let bytes_of = |input: &Input| input.text.len() + input.context.as_ref().map_or(0, String::len);
        let bytes = inputs.iter().map(bytes_of).sum::<usize>();
        if self.engine.expect_room(&request, bytes / MOST_BYTES_OF_A_TOKEN, inputs.len()).is_ok() {
            return Ok(inputs);
        }
        let encodings = self.encodings.clone();
        let count = move || {
            let new: Vec<usize> = inputs
                .iter()
                .filter(|input| input.context.is_some() || !encodings.contains(&model.tokenizer_digest, &input.text))
                .map(bytes_of)
                .collect();
            (inputs, new)
        };
        let (inputs, new) = self.workers.run(count).await?;
        if !new.is_empty() {
            let tokens = new.iter().sum::<usize>() / MOST_BYTES_OF_A_TOKEN;
            let expected = self.engine.expect_room(&request, tokens, new.len());
            expected.inspect_err(|refusal| self.engine.count_refusal(Class::Interactive, refusal))?;
        }
        Ok(inputs)
    }

    /// The neighbours of every text by every generator of the methods; adds what they cost. None are made of a text that
    /// has failed already.
    async fn generate_neighbors(
        &self,
        bound: &Bound,
        prepared: &[PreparedText],
        class: Class,
        deadline: Option<Instant>,
        cost: &mut Usage,
    ) -> Result<Vec<Vec<GeneratedNeighbors>>, ScorerError> {
        let mut all = vec![Vec::new(); prepared.len()];
        // The places of spans in neighbours are not known.
        let is_sound = |text: &PreparedText| text.error.is_none() && text.input.spans.is_none();
        let sound: Vec<usize> = (0..prepared.len()).filter(|&index| is_sound(&prepared[index])).collect();
        for pass in &bound.passes {
            let AuxiliaryPass::Neighbors(Some(generator)) = pass else { continue };
            let model = bound.generators.iter().find(|model| *model.id() == *generator.model);
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

    /// Runs the requests of all models, and adds what they cost. What one model refuses is taken back from the others.
    pub(super) async fn run(
        &self,
        requests: Vec<Request>,
        mut cost: Usage,
        times: &mut ScoringTimes,
    ) -> Result<Usage, ScorerError> {
        let submitted = Instant::now();
        let mut pending: Vec<PendingRequest> = Vec::with_capacity(requests.len());
        for request in requests {
            let request = self.engine.recall(request).await;
            pending.push(self.submit(request).await?);
        }
        let mut begun: Option<Instant> = None;
        for request in pending {
            let answered = request.wait().await?;
            cost.forward_passes += answered.forward_passes;
            cost.cached_passes += answered.cached_passes;
            begun = begun.into_iter().chain(answered.begun).min();
        }
        (times.queue, times.forward) = match begun {
            Some(begun) => (begun.saturating_duration_since(submitted), begun.elapsed()),
            None => (submitted.elapsed(), Duration::ZERO),
        };
        Ok(cost)
    }

    async fn finish(
        &self,
        bound: &Arc<Bound>,
        texts: Vec<PreparedText>,
        work: TextWork,
        mut usage: Usage,
        times: ScoringTimes,
    ) -> Result<Scored, ScorerError> {
        let (bound, answered) = (Arc::clone(bound), Instant::now());
        let to_result = move |(index, text)| result::build(index, text, &bound);
        let built = self.workers.map(work, texts.into_iter().enumerate().collect(), to_result).await?;
        let built = built.into_iter().collect::<Result<Vec<_>, _>>()?;
        let (results, (ids, stats)): (Vec<_>, (Vec<_>, Vec<_>)) =
            built.into_iter().map(|(result, ids, stats)| (result, (ids, stats))).unzip();
        count(&results);
        usage.tokens = results.iter().map(|result| result.scored_tokens).sum();
        let times = ScoringTimes { methods: answered.elapsed(), ..times };
        Ok(Scored { results, stats, ids, usage, times })
    }
}

/// Returns the estimated size of an answer about `texts` texts with `tokens` tokens altogether, in bytes; refuses one that is too long.
fn check_answer(bound: &Bound, texts: usize, tokens: usize) -> Result<usize, ScorerError> {
    let labels: Vec<usize> = bound.plan.methods.iter().map(|method| json_bytes(&method.label)).collect();
    // Of each method a score, or an error with its words.
    let of_a_text = labels.iter().map(|label| label + 150).sum::<usize>() + 100;
    // A label stands by contribution, weight and selection, two of them with a number of some twenty digits; and the
    // token's own numbers take as much as a few methods.
    let of_a_token = labels.iter().map(|label| 3 * (label + 2) + 48).sum::<usize>() + 256;
    let of_tokens = if bound.plan.tokens { tokens.saturating_mul(of_a_token) } else { 0 };
    let (methods, bytes) = (labels.len(), texts.saturating_mul(of_a_text).saturating_add(of_tokens));
    if bytes > MAX_ANSWER_BYTES {
        return Err(ScorerError::AnswerTooLong { texts, methods, bytes });
    }
    Ok(bytes)
}

/// About how many bytes a text has in JSON: one of control takes six.
fn json_bytes(text: &str) -> usize {
    let bytes = |character: char| match character {
        '"' | '\\' => 2,
        character if character.is_ascii_control() => 6,
        character => character.len_utf8(),
    };
    text.chars().map(bytes).sum::<usize>() + 2
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
