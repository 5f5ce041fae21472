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
pub use workers::Workers;

use crate::engine::{Engine, EngineError, Refusal, Stats};
use crate::methods::Fault;
use crate::pool::{OpenError, Pool};
use std::sync::Arc;

/// The most bytes of JSON, by estimate, that one answer may take for its tokens.
const MAX_DETAIL_BYTES: usize = 512 << 20;

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
}

/// The results of a request, in the order of its inputs.
pub struct Scored {
    pub results: Vec<TextResult>,
    /// The statistics of each text's own tokens; none where it could not be run.
    pub stats: Vec<Stats>,
    /// The ids of each text, of which the first is never scored; none where it was not tokenized.
    pub ids: Vec<Arc<[u32]>>,
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
    /// Methods that the models do not fit; pointers are relative to the list of methods.
    #[error("{}", .0.iter().map(|fault| fault.detail.as_str()).collect::<Vec<_>>().join("; "))]
    Unfit(Vec<Fault>),
    /// The engine did not admit it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The engine could not run it.
    #[error(transparent)]
    Failed(#[from] EngineError),
    /// The answer would list more of tokens than one answer may.
    #[error(
        "`details` of {tokens} tokens and {methods} methods would take some {bytes} bytes; the limit is {MAX_DETAIL_BYTES}"
    )]
    TooDetailed { tokens: usize, methods: usize, bytes: usize },
    /// A fault of the service itself.
    #[error("internal error: {0}")]
    Internal(String),
}

impl Scorer {
    /// Puts the parts together; `cache_bytes` are for token ids and neighbours that were made before.
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
        Self { engine, token_counts: token_counts.into(), workers, encodings, substitutions, text_limit }
    }

    /// The models.
    pub fn pool(&self) -> &Pool {
        self.engine.pool()
    }

    /// The engine behind it.
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
