//! Caches of values made of texts: an audit's second look at its texts tokenizes nothing, and a sweep over methods does not run the
//! mask model again. Bounded in bytes.

use crate::access::Principal;
use crate::pool::Model;
use lm::tokenizer::{Encoded, TokenizerError};
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use uuid::Uuid;

/// Roughly what an entry costs besides its value.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// Everything that a value depends on, and the SHA-256 of the text.
type TextKey = (Arc<str>, [u8; 32]);

/// A part of a cache of values made of texts: that of a scope. Cheap to clone; clones are the same cache.
pub struct TextCache<V> {
    entries: Cache<TextKey, Arc<V>>,
    scope: CacheScope,
}

/// Decides whose entries of the caches a request finds.
#[derive(Clone, Debug, Default)]
pub struct CacheScope {
    pub principal: Principal,
    /// True if principals find in the caches what others have asked.
    pub is_shared: bool,
    /// Key of the dataset that the texts are of, whose deletion takes its entries along; `None` for other texts.
    pub dataset: Option<Uuid>,
}

impl CacheScope {
    /// Returns the key in this part of a cache for what has the key `key` in a shared one.
    #[must_use]
    pub fn key(&self, key: &Arc<str>) -> Arc<str> {
        if let Some(dataset) = self.dataset {
            // A dataset has one owner.
            format!("{key}{}", Self::dataset_suffix(dataset)).into()
        } else if self.principal.has_name() && !self.is_shared {
            format!("{key}; of {}", self.principal.name()).into()
        } else {
            Arc::clone(key)
        }
    }

    /// Returns the end of all keys in the part of a dataset.
    #[must_use]
    pub fn dataset_suffix(dataset: Uuid) -> String {
        format!("; of the dataset {dataset}")
    }
}

impl<V> Clone for TextCache<V> {
    fn clone(&self) -> Self {
        Self { entries: self.entries.clone(), scope: self.scope.clone() }
    }
}

impl<V: Send + Sync + 'static> TextCache<V> {
    /// An empty cache that holds about `bytes`; 0 turns it off. `bytes_of` is the size of a value.
    pub fn new(bytes: u64, bytes_of: fn(&V) -> usize) -> Self {
        let weigh = move |_: &TextKey, value: &Arc<V>| {
            u32::try_from(bytes_of(value) + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
        };
        let entries = Cache::builder().max_capacity(bytes).weigher(weigh).support_invalidation_closures().build();
        Self { entries, scope: CacheScope::default() }
    }

    pub fn within(&self, scope: &CacheScope) -> Self {
        Self { entries: self.entries.clone(), scope: scope.clone() }
    }

    /// Drops the entries whose key ends with `suffix`.
    pub fn forget(&self, suffix: Arc<str>) {
        // Fails only in a cache without predicates, which this is not.
        let _ = self.entries.invalidate_entries_if(move |(depends_on, _), _| depends_on.ends_with(&*suffix));
    }

    pub fn get(&self, depends_on: &Arc<str>, text: &str) -> Option<Arc<V>> {
        self.entries.get(&self.key(depends_on, text))
    }

    pub fn contains(&self, depends_on: &Arc<str>, text: &str) -> bool {
        self.entries.contains_key(&self.key(depends_on, text))
    }

    pub fn insert(&self, depends_on: &Arc<str>, text: &str, value: V) -> Arc<V> {
        let value = Arc::new(value);
        self.entries.insert(self.key(depends_on, text), Arc::clone(&value));
        value
    }

    fn key(&self, depends_on: &Arc<str>, text: &str) -> TextKey {
        (self.scope.key(depends_on), Sha256::digest(text).into())
    }
}

/// Token ids of texts.
pub type Encodings = TextCache<Encoded>;

impl Encodings {
    /// The text in the model's ids. One of which only parts are scored may be that of a chat template.
    pub fn encode(&self, model: &Model, text: &str, in_part: bool) -> Result<Arc<Encoded>, TokenizerError> {
        let digest = &model.tokenizer_digest;
        let key = if in_part { self.key(&format!("{digest}; in part").into(), text) } else { self.key(digest, text) };
        if let Some(known) = self.entries.get(&key) {
            return Ok(known);
        }
        let encoded = if in_part { model.tokenizer.encode_chat(text) } else { model.tokenizer.encode(text) };
        let encoded = Arc::new(encoded?);
        self.entries.insert(key, Arc::clone(&encoded));
        Ok(encoded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn principals_have_their_own_part_of_the_caches_unless_they_share() {
        let identity = "model".into();
        let key = |name: &str, is_shared: bool| {
            CacheScope { principal: Principal::new(name, false), is_shared, dataset: None }.key(&identity)
        };
        assert_eq!((&*CacheScope::default().key(&identity), &*key("alice", true)), ("model", "model"));
        assert_eq!((&*key("", false), &*key("alice", false)), ("model", "model; of alice"));
        assert_ne!(key("alice", false), key("bob", false));
    }

    #[test]
    fn a_dataset_is_forgotten_alone() {
        let (cache, model) = (TextCache::new(1 << 20, |_: &usize| 1), "model".into());
        let parts = [Some(1), Some(2), None].map(|dataset| {
            cache.within(&CacheScope {
                is_shared: true,
                dataset: dataset.map(Uuid::from_u128),
                ..CacheScope::default()
            })
        });
        parts.iter().for_each(|part| drop(part.insert(&model, "text", 7)));
        cache.forget(CacheScope::dataset_suffix(Uuid::from_u128(1)).into());
        assert_eq!(parts.map(|part| part.contains(&model, "text")), [false, true, true]);
    }

    #[test]
    fn the_cache_is_bounded_in_bytes() {
        const MOST_BYTES: u64 = 32 << 20;
        let (cache, model) = (TextCache::new(MOST_BYTES, |bytes: &usize| *bytes), "model".into());
        let texts: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        for text in &texts {
            cache.insert(&model, text, 1 << 20);
        }
        cache.entries.run_pending_tasks();
        let kept = texts.iter().filter(|text| cache.contains(&model, text)).count();
        assert!(kept > 0 && kept as u64 * (1 << 20) <= MOST_BYTES, "{kept} of 100 values of 1 MiB");
    }
}
