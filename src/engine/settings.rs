//! Devices and settings of an engine.

use super::circuit::Circuit;
use std::path::PathBuf;
use std::sync::Arc;

/// A device that runs models, on a thread of its own.
pub struct DeviceSlot {
    /// Name in logs, metrics and status: `cpu`, `cuda:0` ...
    pub name: String,
    /// Maximum number of bytes of the models on it, by the books: weights and the activations of one batch.
    pub memory: u64,
    /// The token budget of a batch. A longer sequence is legal and runs alone.
    pub max_batch_tokens: usize,
    pub threads: usize,
    /// The failures of its server, which all connections to that share; those of the device where it is none.
    pub server: Arc<Circuit>,
    /// Gives freed pages back; called on the device's thread after a model was dropped.
    pub trim: Box<dyn Fn() + Send>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineOptions {
    /// Maximum number of interactive tokens admitted and not yet answered.
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
    /// Maximum disk space of its files in bytes. A sequence whose statistics take more than 1/64 of it is not kept.
    pub limit: u64,
}
