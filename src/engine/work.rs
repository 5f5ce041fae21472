//! What a caller hands to the engine: devices, models, settings, work.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::models::masked::MaskedPosition;
use crate::models::{LoadedModel, ModelError};
use crate::token_stats::TokenStats;

/// Loads a model to the device of this index. Called on that device's thread, again for every attempt.
pub type Load = Arc<dyn Fn(usize) -> Result<LoadedModel, ModelError> + Send + Sync>;

/// Estimates the bytes that a batch of so many tokens takes beside the weights. Never less for more tokens.
pub type ActivationBytes = Arc<dyn Fn(usize) -> u64 + Send + Sync>;

/// The statistics of one sequence: `len - 1` entries for `len` ids, none for a sequence without ids.
pub type Stats = Arc<[TokenStats]>;

/// A device that runs models, on a thread of its own.
pub struct DeviceSlot {
    /// What logs, metrics and status call it: `cpu`, `cuda:0` ...
    pub name: String,
    /// How many bytes the models on it may take, by the books: weights and the activations of one batch.
    pub memory: u64,
    /// The token budget of a batch; with a calibration that of models for which none is known. A longer sequence is legal
    /// and runs alone.
    pub max_batch_tokens: usize,
    /// How the budget that suits a model is found; none: all have the one above.
    pub calibration: Option<Calibration>,
    /// Threads of its private pool.
    pub threads: usize,
    /// Gives freed pages back; called on the device's thread after a model was dropped.
    pub trim: Box<dyn Fn() + Send>,
}

/// How a device finds the token budget that suits a causal model, when it has loaded it: by running texts of any ids. A
/// masked model runs its blanks in groups of its own, whatever the batch is, and has the device's budget.
pub struct Calibration {
    /// The budgets to try, rising.
    pub ladder: Vec<usize>,
    /// After this time no further pass begins.
    pub time: Duration,
    /// What earlier engines found.
    pub known: Box<dyn KnownBudgets + Send>,
}

/// Budgets that were measured, on one device, by the model's [identity](ModelSource::identity). What goes wrong with them is
/// nobody's failure: then a budget is measured again.
pub trait KnownBudgets {
    /// The budget of a model.
    fn find(&self, identity: &str) -> Option<usize>;
    /// Keeps it for later engines.
    fn keep(&self, identity: &str, tokens: usize);
}

/// A model that is declared: everything that is known of it before its files are opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSlot {
    /// The id by which requests name it.
    pub id: String,
    /// Whether it is loaded as soon as it is registered, and readiness waits for it; otherwise the first request loads
    /// it. An eager model is never evicted.
    pub eager: bool,
    /// Whether it is never evicted once it is loaded.
    pub pinned: bool,
    /// The devices that may hold it, as indexes into those of the engine. Several hold replicas that share one queue.
    pub devices: Vec<usize>,
}

/// A model whose files are opened, so that it can be loaded.
pub struct ModelSource {
    /// All that its numbers depend on (digest, adapter, numeric path, device): the model's part of the cache's key.
    pub identity: Arc<str>,
    /// Whether it fills blanks instead of scoring sequences.
    pub masked: bool,
    /// The longest sequence it takes, in tokens; none where it has no limit.
    pub context: Option<usize>,
    /// Every id below is one of its tokens.
    pub vocab_size: usize,
    /// Bytes of its weights once loaded.
    pub weight_bytes: u64,
    /// What a batch takes beside them.
    pub activation_bytes: ActivationBytes,
    /// Loads it.
    pub load: Load,
}

impl DeviceSlot {
    /// The largest budget that a model on it may come to have.
    pub(super) fn largest_budget(&self) -> usize {
        let tried = self.calibration.iter().flat_map(|calibration| &calibration.ladder);
        tried.copied().fold(self.max_batch_tokens, usize::max)
    }
}

impl ModelSlot {
    /// Whether it names at least one of so many devices, and each but once.
    pub(super) fn has_a_place(&self, devices: usize) -> bool {
        let once =
            |(position, device): (usize, &usize)| *device < devices && !self.devices[..position].contains(device);
        !self.devices.is_empty() && self.devices.iter().enumerate().all(once)
    }
}

impl fmt::Debug for DeviceSlot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DeviceSlot")
            .field("name", &self.name)
            .field("memory", &self.memory)
            .field("max_batch_tokens", &self.max_batch_tokens)
            .field("ladder", &self.calibration.as_ref().map(|calibration| &calibration.ladder))
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ModelSource")
            .field("identity", &self.identity)
            .field("masked", &self.masked)
            .field("context", &self.context)
            .field("vocab_size", &self.vocab_size)
            .field("weight_bytes", &self.weight_bytes)
            .finish_non_exhaustive()
    }
}

/// How the engine runs, whatever its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineSettings {
    /// How many interactive tokens may be admitted and not yet answered.
    pub max_queue_tokens: usize,
    /// The size of the cache in memory, in bytes; 0 turns it off.
    pub cache_bytes: u64,
    /// The cache on disk; none: statistics do not outlive the engine.
    pub disk_cache: Option<DiskCache>,
}

/// Where and how much of the statistics is kept on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskCache {
    /// A directory of its own, made where it is missing.
    pub directory: PathBuf,
    /// What its files may take of the disk, in bytes. A sequence whose statistics take more than 1/64 of it is not kept.
    pub limit: u64,
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

/// A request: sequences to score with one causal model.
#[derive(Debug, Clone)]
pub struct Work {
    /// The model's id.
    pub model: String,
    /// The [`ModelSource::identity`] that the sequences were made for.
    pub identity: Arc<str>,
    /// Token ids, each with whatever the model wants before the first. One with fewer than two ids has no statistics.
    pub sequences: Vec<Arc<[u32]>>,
    /// How urgent it is.
    pub class: Class,
    /// When its answer is of no use any more.
    pub deadline: Option<Instant>,
}

/// A request: blanks to fill with one masked model. Each is a sequence to run, for it is masked in a copy of its own.
#[derive(Debug, Clone)]
pub struct FillWork {
    /// The model's id.
    pub model: String,
    /// The [`ModelSource::identity`] that the sequences were made for.
    pub identity: Arc<str>,
    pub blanks: Vec<MaskedPosition>,
    /// How urgent it is.
    pub class: Class,
    /// When its answer is of no use any more.
    pub deadline: Option<Instant>,
}
