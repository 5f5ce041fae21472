//! Substitutions that were ranked before, so that a sweep over methods does not run the mask model again. Bounded in bytes.

use super::substitution::Substitution;
use crate::engine::Caller;
use crate::pool::Model;
use std::sync::Arc;

/// Roughly what an entry costs besides its text and substitutions.
const OVERHEAD_BYTES: usize = 256;

/// Cheap to clone; clones are the same one.
#[derive(Clone)]
pub struct SubstitutionCache(moka::sync::Cache<NeighborsKey, Arc<Substitutions>>);

/// Everything that the substitutions of a text depend on.
#[derive(Clone, PartialEq, Eq, Hash)]
struct NeighborsKey {
    /// Of the model and of its tokenizer.
    identity: Arc<str>,
    text: Arc<str>,
}

/// The best substitutions of a text.
#[derive(Debug)]
pub struct Substitutions {
    pub substitutions: Vec<Substitution>,
    /// The masked copies that it took.
    pub passes: usize,
}

/// The part of the cache for one model.
#[derive(Clone)]
pub struct ModelPart {
    cache: SubstitutionCache,
    identity: Arc<str>,
}

impl SubstitutionCache {
    /// An empty cache that holds about `bytes`; 0 turns it off.
    pub fn new(bytes: u64) -> Self {
        let weigher = |key: &NeighborsKey, ranked: &Arc<Substitutions>| {
            let bytes = OVERHEAD_BYTES + key.text.len() + size_of_val(&*ranked.substitutions);
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(moka::sync::Cache::builder().max_capacity(bytes).weigher(weigher).build())
    }

    /// Forgets all texts.
    pub fn clear(&self) {
        self.0.invalidate_all();
    }

    /// The part for a model, as a caller finds it.
    pub fn for_model(&self, model: &Model, caller: &Caller) -> ModelPart {
        self.part(&format!("{} {}", caller.cache_key(&model.identity), model.tokenizer_digest))
    }

    pub(super) fn part(&self, identity: &str) -> ModelPart {
        ModelPart { cache: self.clone(), identity: identity.into() }
    }
}

impl ModelPart {
    /// The substitutions of a text.
    pub fn get(&self, text: &Arc<str>) -> Option<Arc<Substitutions>> {
        self.cache.0.get(&self.key(text))
    }

    /// Remembers the substitutions of a text.
    pub fn insert(&self, text: &Arc<str>, substitutions: Substitutions) -> Arc<Substitutions> {
        let substitutions = Arc::new(substitutions);
        self.cache.0.insert(self.key(text), Arc::clone(&substitutions));
        substitutions
    }

    /// Waits until what is too much has gone.
    #[cfg(test)]
    pub fn settle(&self) {
        self.cache.0.run_pending_tasks();
    }

    fn key(&self, text: &Arc<str>) -> NeighborsKey {
        NeighborsKey { identity: Arc::clone(&self.identity), text: Arc::clone(text) }
    }
}
