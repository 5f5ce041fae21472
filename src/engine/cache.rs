//! Statistics of sequences that ran before. Bounded in bytes; the device thread inserts, admission looks up.
//!
//! The key is what determines the numbers and nothing else: the model's identity (digest and numeric path) and the
//! ids. So changing a method's parameters costs no forward pass, and two configured models of one identity share
//! entries.

use std::sync::Arc;

use moka::sync::Cache;

use super::Stats;

/// Roughly what an entry costs besides its ids and statistics: the key, two reference counts, moka's bookkeeping.
const ENTRY_OVERHEAD_BYTES: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    identity: Arc<str>,
    ids: Arc<[u32]>,
}

/// The cache, or none.
#[derive(Debug)]
pub(super) struct StatsCache {
    identities: Vec<Arc<str>>,
    entries: Option<Cache<Key, Stats>>,
}

impl StatsCache {
    /// A cache for models of the given identities that holds about `bytes`; 0 turns it off.
    pub(super) fn new(identities: Vec<Arc<str>>, bytes: u64) -> Self {
        let entries = (bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(bytes)
                .weigher(|key: &Key, stats: &Stats| {
                    let bytes = size_of_val(&*key.ids) + size_of_val(&**stats);
                    u32::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
                })
                .build()
        });
        Self { identities, entries }
    }

    /// The statistics of `ids` under the model at index `model`.
    pub(super) fn get(&self, model: usize, ids: &Arc<[u32]>) -> Option<Stats> {
        self.entries.as_ref()?.get(&self.key(model, ids)?)
    }

    /// Remembers the statistics of `ids` under the model at index `model`.
    pub(super) fn insert(&self, model: usize, ids: &Arc<[u32]>, stats: &Stats) {
        if let (Some(entries), Some(key)) = (&self.entries, self.key(model, ids)) {
            entries.insert(key, Arc::clone(stats));
        }
    }

    /// About how many bytes the entries take.
    pub(super) fn bytes(&self) -> u64 {
        self.entries.as_ref().map_or(0, Cache::weighted_size)
    }

    fn key(&self, model: usize, ids: &Arc<[u32]>) -> Option<Key> {
        Some(Key { identity: Arc::clone(self.identities.get(model)?), ids: Arc::clone(ids) })
    }
}
