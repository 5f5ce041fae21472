//! Token ids of texts that were seen before: an audit's second look at its texts tokenizes nothing.

use crate::engine::Caller;
use crate::pool::Model;
use lm::tokenizer::{Encoded, TokenizerError};
use moka::sync::Cache;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Roughly what an entry costs besides its ids and offsets.
const ENTRY_OVERHEAD_BYTES: usize = 256;

/// The caller's key for the tokenizer's digest, and the text's digest.
type EncodingKey = (Arc<str>, [u8; 32]);

/// Encodes texts, or remembers how; cheap to clone.
#[derive(Clone)]
pub struct Encodings {
    cache: Option<Cache<EncodingKey, Arc<Encoded>>>,
    caller: Caller,
}

impl Encodings {
    /// A cache that holds about `bytes`; 0 turns it off.
    pub fn new(bytes: u64) -> Self {
        let weigh = |_: &EncodingKey, encoded: &Arc<Encoded>| {
            let bytes = size_of_val(&*encoded.ids) + size_of_val(&*encoded.offsets);
            u32::try_from(bytes + ENTRY_OVERHEAD_BYTES).unwrap_or(u32::MAX)
        };
        let cache = (bytes > 0).then(|| Cache::builder().max_capacity(bytes).weigher(weigh).build());
        Self { cache, caller: Caller::default() }
    }

    /// The same cache as a caller finds it.
    pub fn called_by(&self, caller: &Caller) -> Self {
        Self { cache: self.cache.clone(), caller: caller.clone() }
    }

    /// Forgets all texts.
    pub fn clear(&self) {
        if let Some(cache) = &self.cache {
            cache.invalidate_all();
        }
    }

    /// Returns true if the text was tokenized for the model lately.
    pub fn knows(&self, model: &Model, text: &str) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.contains_key(&self.key(model, text)))
    }

    fn key(&self, model: &Model, text: &str) -> EncodingKey {
        (self.caller.cache_key(&model.tokenizer_digest), Sha256::digest(text).into())
    }

    /// The text in the model's ids.
    ///
    /// # Errors
    /// Where the tokenizer has no token for a part of it.
    pub fn encode(&self, model: &Model, text: &str) -> Result<Arc<Encoded>, TokenizerError> {
        let Some(cache) = &self.cache else { return model.tokenizer.encode(text).map(Arc::new) };
        let key = self.key(model, text);
        if let Some(known) = cache.get(&key) {
            return Ok(known);
        }
        let encoded = Arc::new(model.tokenizer.encode(text)?);
        cache.insert(key, Arc::clone(&encoded));
        Ok(encoded)
    }
}
