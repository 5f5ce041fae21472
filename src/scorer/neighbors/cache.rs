//! Swaps that were found before, so that a sweep over methods does not ask the mask model again. Bounded in bytes.

use super::swap::Swap;
use crate::pool::Model;
use std::sync::Arc;

/// Roughly what an entry costs besides its text and swaps.
const OVERHEAD_BYTES: usize = 256;

/// Cheap to clone; clones are the same one.
#[derive(Clone)]
pub struct Cache(moka::sync::Cache<Key, Arc<Found>>);

/// What the swaps of a text depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// Of the model and of its tokenizer.
    identity: Arc<str>,
    text: Arc<str>,
}

/// The best swaps of a text.
#[derive(Debug)]
pub struct Found {
    pub swaps: Vec<Swap>,
    /// The masked copies that it took.
    pub passes: usize,
}

/// The part of the cache for one model.
#[derive(Clone)]
pub struct Part {
    cache: Cache,
    identity: Arc<str>,
}

impl Cache {
    /// An empty cache that holds about `bytes`; 0 turns it off.
    pub fn new(bytes: u64) -> Self {
        let weigher = |key: &Key, found: &Arc<Found>| {
            let bytes = OVERHEAD_BYTES + key.text.len() + size_of_val(&*found.swaps);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(moka::sync::Cache::builder().max_capacity(bytes).weigher(weigher).build())
    }

    /// The part for a model.
    pub fn of(&self, model: &Model) -> Part {
        self.part(&format!("{} {}", model.identity, model.tokenizer_digest))
    }

    pub(super) fn part(&self, identity: &str) -> Part {
        Part { cache: self.clone(), identity: identity.into() }
    }
}

impl Part {
    /// The swaps of a text.
    pub fn get(&self, text: &Arc<str>) -> Option<Arc<Found>> {
        self.cache.0.get(&self.key(text))
    }

    /// Remembers the swaps of a text.
    pub fn insert(&self, text: &Arc<str>, found: Found) -> Arc<Found> {
        let found = Arc::new(found);
        self.cache.0.insert(self.key(text), Arc::clone(&found));
        found
    }

    /// Waits until what is too much has gone.
    #[cfg(test)]
    pub fn settle(&self) {
        self.cache.0.run_pending_tasks();
    }

    fn key(&self, text: &Arc<str>) -> Key {
        Key { identity: Arc::clone(&self.identity), text: Arc::clone(text) }
    }
}
