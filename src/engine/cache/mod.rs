//! Statistics of sequences that ran before, in memory and, where it is configured, on disk. Both are bounded in bytes; the
//! device threads insert into both, admission looks up in memory.
//!
//! The disk is asked before admission, off the threads that must not block: what [`StatsCache::recall`] finds goes into the
//! passes of the request, and into memory.
//!
//! The key is what determines the numbers and nothing else: the model's identity (digest and numeric path) and the
//! ids. So changing a method's parameters costs no forward pass, and two configured models of one identity share
//! entries.

mod disk;
mod files;
mod holds;
mod record;
#[cfg(test)]
mod tests;

pub use holds::StatisticsHold;

use super::EngineOptions;
use super::metrics::DiskMetrics;
use super::request::{Answer, Pass, Stats};
use disk::Disk;
use holds::Holds;
use moka::sync::Cache;
use std::sync::Arc;

/// Roughly what an entry costs besides its ids and statistics: the key, two reference counts, moka's bookkeeping.
const ENTRY_OVERHEAD_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct StatsKey {
    identity: Arc<str>,
    ids: Arc<[u32]>,
}

/// The cache; either part of it may be missing.
#[derive(Debug)]
pub(super) struct StatsCache {
    memory: Option<Cache<StatsKey, Stats>>,
    disk: Option<Arc<Disk>>,
    /// Work that needs what is on disk.
    holds: Arc<Holds>,
}

impl StatsCache {
    pub(super) fn new(settings: &EngineOptions, metrics: DiskMetrics) -> Self {
        let memory = (settings.cache_bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(settings.cache_bytes)
                .support_invalidation_closures()
                .weigher(|key: &StatsKey, stats: &Stats| {
                    let bytes = size_of_val(&*key.ids) + size_of_val(&**stats);
                    u32::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
                })
                .build()
        });
        let holds = Arc::<Holds>::default();
        let disk = settings.disk_cache.as_ref().and_then(|settings| Disk::open(settings, metrics, Arc::clone(&holds)));
        Self { memory, disk, holds }
    }

    /// Begins work whose statistics are not dropped from the disk until it is over; `everything` for work that also needs
    /// those that are there already.
    pub(super) fn hold(&self, everything: bool) -> StatisticsHold {
        self.holds.begin(everything)
    }

    /// Answers a pass, which has the key `identity`, out of the memory; returns true if it could.
    pub(super) fn answer(&self, identity: &Arc<str>, pass: &Pass) -> bool {
        let stats = self.memory.as_ref().and_then(|memory| {
            let ids = pass.input.sequence()?;
            memory.get(&StatsKey::new(identity, ids))
        });
        let is_known = stats.is_some();
        if let Some(stats) = stats {
            pass.settle(Answer::Stats(stats));
        }
        is_known
    }

    /// Remembers the statistics of `ids`. Never blocks.
    pub(super) fn insert(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        self.keep(identity, ids, stats);
        if let Some(disk) = &self.disk {
            disk.insert(identity, ids, stats);
        }
    }

    /// Returns those of the passes, which have the key `identity`, that memory does not answer and [`StatsCache::recall`] may.
    pub(super) fn to_recall<'a>(
        &self,
        identity: &Arc<str>,
        passes: impl Iterator<Item = &'a Arc<Pass>>,
    ) -> Vec<Arc<Pass>> {
        if self.disk.is_none() {
            return Vec::new();
        }
        passes.filter(|pass| pass.input.sequence().is_some_and(|ids| !self.holds(identity, ids))).cloned().collect()
    }

    /// Answers passes, which have the key `identity`, from the disk; returns their number. Reads files.
    pub(super) fn recall(&self, identity: &Arc<str>, passes: &[Arc<Pass>]) -> usize {
        let Some(disk) = &self.disk else { return 0 };
        let wanted = passes.iter().filter_map(|pass| Some((pass.input.sequence()?, pass)));
        let mut recalled = 0;
        disk.recall(identity, wanted, |pass, ids, stats| {
            self.keep(identity, ids, &stats);
            pass.settle(Answer::Stats(stats));
            recalled += 1;
        });
        recalled
    }

    /// About how many bytes the entries in memory take.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.as_ref().map_or(0, Cache::weighted_size)
    }

    /// Drops the entries in memory whose identity ends with `suffix`.
    pub(super) fn forget(&self, suffix: Arc<str>) {
        if let Some(memory) = &self.memory {
            // Fails only in a cache without predicates, which this is not.
            let _ = memory.invalidate_entries_if(move |key, _| key.identity.ends_with(&*suffix));
        }
    }

    /// Writes to disk what is queued for it, and lets go of its directory.
    pub(super) fn close(&self) {
        if let Some(disk) = &self.disk {
            disk.close();
        }
    }

    fn holds(&self, identity: &Arc<str>, ids: &Arc<[u32]>) -> bool {
        self.memory.as_ref().is_some_and(|memory| memory.contains_key(&StatsKey::new(identity, ids)))
    }

    fn keep(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        if let Some(memory) = &self.memory {
            memory.insert(StatsKey::new(identity, ids), Arc::clone(stats));
        }
    }
}

impl Drop for StatsCache {
    fn drop(&mut self) {
        self.close();
    }
}

impl StatsKey {
    fn new(identity: &Arc<str>, ids: &Arc<[u32]>) -> Self {
        Self { identity: Arc::clone(identity), ids: Arc::clone(ids) }
    }
}
