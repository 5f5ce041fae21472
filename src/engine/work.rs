//! What a caller hands to the engine: models, settings, work.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use crate::models::{CausalLm, ModelError};
use crate::token_stats::TokenStats;

/// Opens and loads a model. Called on the device thread, again for every attempt.
pub type Load = Box<dyn Fn() -> Result<Box<dyn CausalLm>, ModelError> + Send>;

/// The statistics of one sequence: `len - 1` entries for `len` ids, none for a sequence without ids.
pub type Stats = Arc<[TokenStats]>;

/// A model that the engine may load.
pub struct ModelSource {
    /// The id by which requests name it.
    pub id: String,
    /// Whether it is loaded at start, and readiness waits for it; otherwise the first request loads it.
    pub eager: bool,
    /// The longest sequence it takes, in tokens; none where it has no limit.
    pub context: Option<usize>,
    /// Loads it.
    pub load: Load,
    /// All that its numbers depend on (digest, adapter, numeric path, device): the model's part of the cache's key.
    pub identity: String,
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelSource")
            .field("id", &self.id)
            .field("eager", &self.eager)
            .field("context", &self.context)
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// How the engine runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// Threads that compute; 0 for as many as the machine has.
    pub threads: usize,
    /// The token budget of a batch. A longer sequence is legal and runs alone.
    pub max_batch_tokens: usize,
    /// How many interactive tokens may be admitted and not yet answered.
    pub max_queue_tokens: usize,
    /// The size of the cache in bytes; 0 turns it off.
    pub cache_bytes: u64,
}

/// How urgent a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A client waits for it.
    Interactive,
    /// An audit or a command line feeds it.
    Batch,
}

impl Class {
    pub(super) const ALL: [Self; 2] = [Self::Interactive, Self::Batch];

    /// The position in [`Class::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::Batch => "batch",
        }
    }
}

/// A request: sequences to run through one model.
#[derive(Debug, Clone)]
pub struct Work {
    /// The model's id.
    pub model: String,
    /// Token ids, each with whatever the model wants before the first. One with fewer than two ids has no statistics.
    pub sequences: Vec<Arc<[u32]>>,
    /// How urgent it is.
    pub class: Class,
    /// When its answer is of no use any more.
    pub deadline: Option<Instant>,
}
