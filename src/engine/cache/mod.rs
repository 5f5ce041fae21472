//! Statistics of sequences that ran before, in memory and, where it is configured, on disk. Both are bounded in bytes; the
//! device threads insert into both, admission looks up in memory.
//!
//! The disk is asked before admission, off the threads that must not block: what [`StatsCache::recall`] finds goes with
//! the request and into memory.
//!
//! The key is what determines the numbers and nothing else: the model's identity (digest and numeric path) and the
//! ids. So changing a method's parameters costs no forward pass, and two configured models of one identity share
//! entries.

mod disk;
mod files;
mod record;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use moka::sync::Cache;

use super::meters::DiskMeters;
use super::{EngineSettings, Stats};
use disk::Disk;

pub(super) use disk::Recalled;

/// Roughly what an entry costs besides its ids and statistics: the key, two reference counts, moka's bookkeeping.
const ENTRY_OVERHEAD_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    identity: Arc<str>,
    ids: Arc<[u32]>,
}

/// Where statistics were found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tier {
    Memory,
    Disk,
}

/// The cache; either part of it may be missing.
#[derive(Debug)]
pub(super) struct StatsCache {
    memory: Option<Cache<Key, Stats>>,
    disk: Option<Disk>,
}

impl StatsCache {
    /// Makes the memory's part and opens the disk's.
    pub(super) fn new(settings: &EngineSettings, meters: DiskMeters) -> Self {
        let memory = (settings.cache_bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(settings.cache_bytes)
                .weigher(|key: &Key, stats: &Stats| {
                    let bytes = size_of_val(&*key.ids) + size_of_val(&**stats);
                    u32::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
                })
                .build()
        });
        Self { memory, disk: settings.disk_cache.as_ref().and_then(|settings| Disk::open(settings, meters)) }
    }

    /// The statistics of `ids` under the model of this identity, out of what was recalled or of the memory.
    pub(super) fn get(&self, recalled: &Recalled, identity: &Arc<str>, ids: &Arc<[u32]>) -> Option<(Stats, Tier)> {
        if let Some(stats) = recalled.get(ids) {
            return Some((Arc::clone(stats), Tier::Disk));
        }
        let stats = self.memory.as_ref()?.get(&Key::new(identity, ids))?;
        Some((stats, Tier::Memory))
    }

    /// Remembers the statistics of `ids` under the model of this identity. Never blocks.
    pub(super) fn insert(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        self.keep(identity, ids, stats);
        if let Some(disk) = &self.disk {
            disk.insert(identity, ids, stats);
        }
    }

    /// Whether a disk is there to be asked.
    pub(super) fn has_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// What the disk holds of sequences that memory does not. Reads files.
    pub(super) fn recall(&self, identity: &Arc<str>, sequences: &[Arc<[u32]>]) -> Recalled {
        let Some(disk) = &self.disk else { return Recalled::new() };
        let wanted = sequences.iter().filter(|ids| ids.len() > 1 && !self.holds(identity, ids));
        let recalled = disk.recall(identity, wanted);
        for (ids, stats) in &recalled {
            self.keep(identity, ids, stats);
        }
        recalled
    }

    /// About how many bytes the entries in memory take.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, Cache::weighted_size)
    }

    /// Writes to disk what is queued for it, and lets go of its directory.
    pub(super) fn close(&self) {
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }

    fn holds(&self, identity: &Arc<str>, ids: &Arc<[u32]>) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.contains_key(&Key::new(identity, ids)))
    }

    fn keep(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        if let Some(memory) = &self.memory {
            memory.insert(Key::new(identity, ids), Arc::clone(stats));
        }
    }
}

impl Key {
    fn new(identity: &Arc<str>, ids: &Arc<[u32]>) -> Self {
        Self { identity: Arc::clone(identity), ids: Arc::clone(ids) }
    }
}
