//! How an engine is built: its devices and its settings.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::circuit::Circuit;

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
    pub calibration: Option<SpeedCalibration>,
    /// Threads of its private pool.
    pub threads: usize,
    /// The failures of its server, which all connections to that share; those of the device where it is none.
    pub server: Arc<Circuit>,
    /// Gives freed pages back; called on the device's thread after a model was dropped.
    pub trim: Box<dyn Fn() + Send>,
}

/// How a device finds the token budget that suits a causal model, when it has loaded it: by running texts of any ids. A
/// masked model runs its masked positions in groups of its own, whatever the batch is, and has the device's budget.
pub struct SpeedCalibration {
    /// The budgets to try, rising.
    pub ladder: Vec<usize>,
    /// After this time no further pass begins.
    pub time: Duration,
    /// What earlier engines found.
    pub known: Box<dyn KnownBudgets + Send>,
}

/// Budgets that were measured, on one device, by the model's [identity](crate::pool::Model::identity). A fault in them fails
/// nothing: then a budget is measured again.
pub trait KnownBudgets {
    fn find(&self, identity: &str) -> Option<usize>;
    /// Keeps it for later engines.
    fn keep(&self, identity: &str, tokens: usize);
}

impl DeviceSlot {
    /// The largest budget that a model on it may come to have.
    pub(super) fn largest_budget(&self) -> usize {
        let tried = self.calibration.iter().flat_map(|calibration| &calibration.ladder);
        tried.copied().fold(self.max_batch_tokens, usize::max)
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

/// How the engine runs, whatever its devices.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
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
