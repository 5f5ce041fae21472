//! Statistics of sequences that ran before. Bounded in bytes; the device threads insert, admission looks up.
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
pub(super) struct StatsCache(Option<Cache<Key, Stats>>);

impl StatsCache {
    /// A cache that holds about `bytes`; 0 turns it off.
    pub(super) fn new(bytes: u64) -> Self {
        Self((bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(bytes)
                .weigher(|key: &Key, stats: &Stats| {
                    let bytes = size_of_val(&*key.ids) + size_of_val(&**stats);
                    u32::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
                })
                .build()
        }))
    }

    /// The statistics of `ids` under the model of this identity.
    pub(super) fn get(&self, identity: &Arc<str>, ids: &Arc<[u32]>) -> Option<Stats> {
        self.0.as_ref()?.get(&Key::new(identity, ids))
    }

    /// Remembers the statistics of `ids` under the model of this identity.
    pub(super) fn insert(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        if let Some(entries) = &self.0 {
            entries.insert(Key::new(identity, ids), Arc::clone(stats));
        }
    }

    /// About how many bytes the entries take.
    pub(super) fn bytes(&self) -> u64 {
        self.0.as_ref().map_or(0, Cache::weighted_size)
    }
}

impl Key {
    fn new(identity: &Arc<str>, ids: &Arc<[u32]>) -> Self {
        Self { identity: Arc::clone(identity), ids: Arc::clone(ids) }
    }
}
