//! Texts and methods to scores: what the HTTP service, the audits and the command line share.
//!
//! A request goes through four steps: the models that it names are opened if they were not ([`Bound`]); every text is
//! tokenized, and what its methods look at becomes the smallest set of forward passes (on [`Workers`]); these go through
//! the [`Engine`], all texts at once; the statistics that come back become scores (on the workers again). A bad text fails
//! alone, and so does a method on a text.

mod bound;
mod encodings;
mod error;
mod neighbors;
mod overflow;
mod passes;
mod result;
mod scope;
mod score;
mod text;
mod text_error;
mod token_counts;
mod token_sequences;
mod token_stats;
mod windows;
mod workers;

pub use bound::{Bound, Plan, TunedSplit};
use encodings::Encodings;
pub use neighbors::{Generated, GeneratedNeighbor};
pub use overflow::Overflow;
pub use result::{TextResult, TokenDetail, Usage};
pub use text::Input;
pub use text_error::TextError;
pub use token_counts::{Counts, CountsError, CountsFault, CountsFile, FORMAT, load_token_counts};
pub use token_stats::SequenceStats;
pub use workers::Workers;

use crate::engine::{Caller, Engine, EngineError, Refusal, Stats};
use crate::pool::{OpenError, Pool};
use mia::methods::Fault;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The most bytes, by estimate, that one answer may take.
pub const MAX_ANSWER_BYTES: usize = 128 << 20;

/// The most text of audits and files that is under way at once, in KiB.
const MOST_BATCH_KIB: u32 = 16 << 10;

/// How many texts of an audit or a file to have under way at once.
pub const IN_FLIGHT: usize = 512;

/// Everything that scoring needs; cheap to clone.
#[derive(Clone)]
pub struct Scorer {
    engine: Engine,
    token_counts: Arc<[Arc<Counts>]>,
    workers: Workers,
    encodings: Encodings,
    /// Swaps that were found before.
    substitutions: neighbors::SubstitutionCache,
    /// The most bytes of a text, `limits.text`.
    text_limit: u64,
    /// Room for the texts of audits and files, in KiB.
    batch_texts: Arc<Semaphore>,
    /// Whether callers find in the caches what others have asked.
    shares_cache: bool,
    caller: Caller,
}

/// The results of a request, in the order of its inputs.
pub struct Scored {
    pub results: Vec<TextResult>,
    /// The statistics of each text's own tokens; none where it could not be run.
    pub stats: Vec<Stats>,
    /// The ids of each text, of which the first is never scored; none where it was not tokenized.
    pub ids: Vec<Arc<[u32]>>,
    pub usage: Usage,
    pub times: ScoringTimes,
}

/// How long the stages of a request took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoringTimes {
    /// Until it was tokenized, and neighbours were made where a method wants some.
    pub tokenize: Duration,
    /// From then until the first forward pass began.
    pub queue: Duration,
    /// From then until the last one ended; nothing where all was in the cache.
    pub forward: Duration,
    /// What the methods took.
    pub methods: Duration,
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
    /// Methods that the models do not fit; pointers are relative to the list of methods.
    #[error("{}", .0.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join("; "))]
    Unfit(Vec<Fault>),
    /// The engine did not admit it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine could not run it.
    #[error(transparent)]
    Failed(#[from] EngineError),
    /// The answer would be longer than one answer may.
    #[error(
        "the answer about {texts} texts and {methods} methods may take some {bytes} bytes; the limit is {MAX_ANSWER_BYTES}"
    )]
    AnswerTooLong { texts: usize, methods: usize, bytes: usize },
    /// A fault of the service itself.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Scorer {
    /// Puts the parts together; `cache_bytes` are for token ids and neighbours that were made before. Callers with names share no
    /// cache.
    pub fn new(
        engine: Engine,
        token_counts: Vec<Arc<Counts>>,
        workers: Workers,
        cache_bytes: u64,
        text_limit: u64,
    ) -> Self {
        // Ids and offsets take twice the room of what is kept of neighbours.
        let (encodings, substitutions) =
            (Encodings::new(cache_bytes / 3 * 2), neighbors::SubstitutionCache::new(cache_bytes / 3));
        let (token_counts, caller) = (token_counts.into(), Caller::default());
        let batch_texts = Arc::new(Semaphore::new(MOST_BATCH_KIB as usize));
        Self {
            engine,
            token_counts,
            workers,
            encodings,
            substitutions,
            text_limit,
            batch_texts,
            shares_cache: false,
            caller,
        }
    }

    /// The same, where callers find in the caches what others have asked if `shares_cache` holds.
    #[must_use]
    pub fn sharing_cache(self, shares_cache: bool) -> Self {
        Self { shares_cache, ..self }
    }

    /// The same scorer as the caller of a name uses it; without a name where that is empty.
    #[must_use]
    pub fn called_by(&self, name: &str) -> Self {
        let caller = Caller::new(name, self.shares_cache);
        Self { encodings: self.encodings.called_by(&caller), caller, ..self.clone() }
    }

    pub fn pool(&self) -> &Pool {
        self.engine.pool()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Forgets what was made of texts: token ids, neighbours, and statistics in memory and on disk.
    ///
    /// # Errors
    /// Where the files of the cache on disk cannot be deleted, in words.
    pub async fn forget(&self) -> Result<(), String> {
        self.encodings.clear();
        self.substitutions.clear();
        let engine = self.engine.clone();
        tokio::task::spawn_blocking(move || engine.forget_statistics()).await.map_err(|error| error.to_string())?
    }

    /// The threads for work on the CPU.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }
}
