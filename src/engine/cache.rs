//! Statistics of sequences that ran before. Bounded in bytes; the device thread inserts, admission looks up.
//!
//! The key is what determines the numbers and nothing else: the model's identity (digest and numeric path) and the ids.
//! So changing a method's parameters costs no forward pass, and two configured models of one identity share entries.

use std::sync::Arc;

use moka::sync::Cache;

use crate::token_stats::TokenStats;

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
    entries: Option<Cache<Key, Arc<[TokenStats]>>>,
}

impl StatsCache {
    /// A cache for models of the given identities that holds about `bytes`; 0 turns it off.
    pub(super) fn new(identities: Vec<Arc<str>>, bytes: u64) -> Self {
        let entries = (bytes > 0).then(|| {
            Cache::builder()
                .max_capacity(bytes)
                .weigher(|key: &Key, stats: &Arc<[TokenStats]>| {
                    let bytes = size_of_val(&*key.ids) + size_of_val(&**stats);
                    u32::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
                })
                .build()
        });
        Self {
            identities,
            entries,
        }
    }

    /// The statistics of `ids` under the model at index `model`.
    pub(super) fn get(&self, model: usize, ids: &Arc<[u32]>) -> Option<Arc<[TokenStats]>> {
        self.entries.as_ref()?.get(&self.key(model, ids)?)
    }

    /// Remembers the statistics of `ids` under the model at index `model`.
    pub(super) fn insert(&self, model: usize, ids: &Arc<[u32]>, stats: &Arc<[TokenStats]>) {
        if let (Some(entries), Some(key)) = (&self.entries, self.key(model, ids)) {
            entries.insert(key, Arc::clone(stats));
        }
    }

    fn key(&self, model: usize, ids: &Arc<[u32]>) -> Option<Key> {
        Some(Key {
            identity: Arc::clone(self.identities.get(model)?),
            ids: Arc::clone(ids),
        })
    }
}
