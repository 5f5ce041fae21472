//! Texts and methods to scores: what the HTTP service, the audits and the command line share.
//!
//! A request goes through four steps: the model's files are opened if they were not, every text is tokenized (on
//! [`Workers`]), the ids of all texts go through the [`Engine`] at once, and the statistics that come back become scores
//! (on the workers again). A bad text fails alone.

mod entry;
mod model;
mod neighbors;
mod origin;
mod registry;
mod result;
mod text;
mod token_counts;
mod workers;

pub use entry::{Declared, Entry, Opener, Opening, Retry};
pub use model::Model;
pub use neighbors::{Generated, Neighbor};
pub use origin::{OpenError, Origin};
pub use registry::{Registry, RegistryError};
pub use result::{TextError, TextResult, TokenDetail, Usage};
pub use text::{Input, Overflow};
pub use token_counts::{Counts, CountsError, CountsFault, CountsFile, FORMAT, load_token_counts};
pub use workers::Workers;

use crate::engine::{Class, Engine, EngineError, Output, Refusal, Stats, Ticket, Work};
use crate::methods::LabelledMethod;
use crate::telemetry::names;
use std::sync::Arc;
use std::time::Instant;
use text::{Prepared, TextRules};

/// The most contributions of tokens to scores that one answer may list: some 250 MB of JSON.
const MAX_CONTRIBUTIONS: usize = 4_000_000;

/// How many texts of an audit or a file to have under way at once.
pub const IN_FLIGHT: usize = 512;

/// Everything that scoring needs; cheap to clone.
#[derive(Clone)]
pub struct Scorer {
    engine: Engine,
    registry: Arc<Registry>,
    workers: Workers,
    /// Swaps that were found before.
    swaps: neighbors::Cache,
    /// The most bytes of a text, `limits.text`.
    text_limit: u64,
}

/// How texts are to be scored.
#[derive(Clone)]
pub struct Plan {
    pub model: Arc<Entry>,
    pub methods: Arc<[LabelledMethod]>,
    pub overflow: Overflow,
    /// Whether each result lists its tokens.
    pub tokens: bool,
}

/// The results of a request, in the order of its inputs.
pub struct Scored {
    /// The model that scored.
    pub model: Arc<Model>,
    pub results: Vec<TextResult>,
    pub usage: Usage,
}

/// Why a whole request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ScorerError {
    /// The model's files cannot be opened.
    #[error(transparent)]
    Unopened(#[from] OpenError),
    /// The model fills gaps instead of continuing texts.
    #[error("model `{0}` is a masked model, which gives no probabilities of texts")]
    Masked(String),
    /// The engine did not admit it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine could not run it.
    #[error(transparent)]
    Failed(#[from] EngineError),
    /// The answer would list more contributions of tokens to scores than one answer may.
    #[error("the texts have {tokens} tokens, and {methods} methods would list {} contributions; the limit is {MAX_CONTRIBUTIONS}", tokens * methods)]
    TooDetailed { tokens: usize, methods: usize },
    /// A fault of the service itself.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Scorer {
    /// Puts the parts together.
    pub fn new(engine: Engine, registry: Arc<Registry>, workers: Workers, text_limit: u64) -> Self {
        Self { engine, registry, workers, swaps: neighbors::Cache::new(), text_limit }
    }

    /// The models.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The threads for work on the CPU.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Scores all inputs as one interactive request, admitted whole or not at all.
    ///
    /// # Errors
    /// [`ScorerError`]; what is wrong with one text stands in its result instead.
    pub async fn score(
        &self,
        plan: &Plan,
        inputs: Vec<Input>,
        deadline: Option<Instant>,
    ) -> Result<Scored, ScorerError> {
        self.score_as(plan, inputs, Class::Interactive, deadline).await
    }

    /// Scores one text behind interactive work, waiting for room as long as it takes: a part of an audit or of a file.
    /// Many may run at once, [`IN_FLIGHT`] as a rule; the engine's window bounds their tokens.
    ///
    /// # Errors
    /// As [`Scorer::score`].
    pub async fn score_behind(&self, plan: &Plan, input: Input) -> Result<Scored, ScorerError> {
        self.score_as(plan, vec![input], Class::Batch, None).await
    }

    /// The model of a plan, opened now if it was not.
    ///
    /// # Errors
    /// [`ScorerError::Unopened`], or [`ScorerError::Masked`] where it cannot score.
    pub async fn open(&self, plan: &Plan) -> Result<Arc<Model>, ScorerError> {
        let model = plan.model.open(Retry::AfterPause).await?;
        if model.masked { Err(ScorerError::Masked(model.id.clone())) } else { Ok(model) }
    }

    async fn score_as(
        &self,
        plan: &Plan,
        inputs: Vec<Input>,
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<Scored, ScorerError> {
        let model = self.open(plan).await?;
        let rules = TextRules {
            tokenizer: model.tokenizer.clone(),
            longest: model.longest,
            context: model.context,
            text_limit: self.text_limit,
            overflow: plan.overflow,
        };
        let prepared = self.workers.map(inputs, move |input| Prepared::new(input, &rules)).await?;
        let output = self.run(plan, &model, &prepared, class, deadline).await?;
        self.finish(plan, model, prepared, output).await
    }

    async fn run(
        &self,
        plan: &Plan,
        model: &Model,
        prepared: &[Prepared],
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<Output, ScorerError> {
        let sequences: Vec<Arc<[u32]>> = prepared.iter().filter_map(Prepared::sequence).collect();
        let (tokens, methods) = (sequences.iter().map(|ids| ids.len()).sum::<usize>(), plan.methods.len());
        if plan.tokens && tokens.saturating_mul(methods) > MAX_CONTRIBUTIONS {
            return Err(ScorerError::TooDetailed { tokens, methods });
        }
        let identity = Arc::clone(&model.identity);
        let work = Work { model: model.id.clone(), identity, sequences, class, deadline };
        let ticket: Ticket = match class {
            Class::Interactive => self.engine.submit(work)?,
            Class::Batch => self.engine.submit_when_room(work).await?,
        };
        Ok(ticket.wait().await?)
    }

    async fn finish(
        &self,
        plan: &Plan,
        model: Arc<Model>,
        prepared: Vec<Prepared>,
        output: Output,
    ) -> Result<Scored, ScorerError> {
        let mut stats = output.stats.into_iter();
        let answered = |(index, text): (usize, Prepared)| {
            let stats = text.sequence().and_then(|_| stats.next());
            Answered { index, text, stats }
        };
        let answered: Vec<Answered> = prepared.into_iter().enumerate().map(answered).collect();
        let (methods, tokenizer) = (plan.methods.clone(), plan.tokens.then(|| model.tokenizer.clone()));
        let to_result = move |answered: Answered| result::build(answered, &methods, tokenizer.as_ref());
        let results = self.workers.map(answered, to_result).await?;
        count(&results);
        let usage = Usage {
            tokens: results.iter().map(|r: &TextResult| r.scored_tokens).sum(),
            forward_passes: output.forward_passes,
            cached_passes: output.cached_passes,
        };
        Ok(Scored { model, results, usage })
    }
}

/// A text that has been through the model; without statistics where it could not be run.
struct Answered {
    index: usize,
    text: Prepared,
    stats: Option<Stats>,
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
