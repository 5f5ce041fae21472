//! The scorer of texts.

use super::encodings::Encodings;
use super::limits::MOST_BATCH_KIB;
use super::neighbors::SubstitutionCache;
use super::token_counts::Counts;
use super::workers::Workers;
use crate::engine::{Caller, Engine};
use crate::pool::Pool;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Everything that scoring needs; cheap to clone.
#[derive(Clone)]
pub struct Scorer {
    pub(super) engine: Engine,
    pub(super) token_counts: Arc<[Arc<Counts>]>,
    pub(super) workers: Workers,
    pub(super) encodings: Encodings,
    /// Swaps that were found before.
    pub(super) substitutions: SubstitutionCache,
    /// Maximum number of bytes of a text, `limits.text`.
    pub(super) text_limit: u64,
    /// Room for the texts of audits and files, in KiB.
    pub(super) batch_texts: Arc<Semaphore>,
    /// True if callers find in the caches what others have asked.
    shares_cache: bool,
    pub(super) caller: Caller,
}

impl Scorer {
    /// Puts the parts together; `cache_bytes` are for token ids and neighbours that were made before. Callers with names share no
    /// cache.
    pub fn new(
        engine: Engine,
        token_counts: Vec<Arc<Counts>>,
        workers: Workers,
        cache_bytes: u64,
        text_limit: u64,
    ) -> Self {
        // Ids and offsets take twice the room of what is kept of neighbours.
        let (encodings, substitutions) = (Encodings::new(cache_bytes / 3 * 2), SubstitutionCache::new(cache_bytes / 3));
        let (token_counts, caller) = (token_counts.into(), Caller::default());
        let batch_texts = Arc::new(Semaphore::new(MOST_BATCH_KIB as usize));
        Self {
            engine,
            token_counts,
            workers,
            encodings,
            substitutions,
            text_limit,
            batch_texts,
            shares_cache: false,
            caller,
        }
    }

    /// The same, where callers find in the caches what others have asked if `shares_cache` holds.
    #[must_use]
    pub fn sharing_cache(self, shares_cache: bool) -> Self {
        Self { shares_cache, ..self }
    }

    /// The same scorer as the caller of a name uses it; without a name where that is empty.
    #[must_use]
    pub fn called_by(&self, name: &str) -> Self {
        let caller = Caller::new(name, self.shares_cache);
        Self { encodings: self.encodings.called_by(&caller), caller, ..self.clone() }
    }

    /// The models.
    pub fn pool(&self) -> &Pool {
        self.engine.pool()
    }

    /// The engine behind it.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Forgets what was made of texts: token ids, neighbours, and statistics in memory and on disk.
    ///
    /// # Errors
    /// Where the files of the cache on disk cannot be deleted, in words.
    pub async fn forget(&self) -> Result<(), String> {
        self.encodings.clear();
        self.substitutions.clear();
        let engine = self.engine.clone();
        tokio::task::spawn_blocking(move || engine.forget_statistics()).await.map_err(|error| error.to_string())?
    }

    /// The threads for work on the CPU.
    pub fn workers(&self) -> &Workers {
        &self.workers
    }
}
