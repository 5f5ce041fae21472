//! The scorer of texts.

use super::cache::{CacheScope, Encodings, TextCache};
use super::substitution::Substitutions;
use super::token_counts::Counts;
use super::workers::Workers;
use crate::access::Principal;
use crate::config::LayersChoice;
use crate::engine::{Class, Engine, PendingRequest, Refusal, Request};
use crate::pool::{Declaration, Model, Origin, Pool};
use mia::methods::{Scope, Untunable};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Maximum amount of text of audits and files under way at once, in KiB.
pub(super) const MOST_BATCH_KIB: u32 = 16 << 10;

/// Number of texts of an audit or a file to have under way at once.
pub const IN_FLIGHT: usize = 512;

/// Everything that scoring needs; cheap to clone.
#[derive(Clone)]
pub struct Scorer {
    pub(super) engine: Engine,
    pub(super) token_counts: Arc<[Arc<Counts>]>,
    pub(super) workers: Workers,
    pub(super) encodings: Encodings,
    /// Swaps that were found before.
    pub(super) substitutions: TextCache<Substitutions>,
    /// Maximum number of bytes of a text, `limits.text`.
    pub(super) text_limit: u64,
    /// Room for the texts of audits and files, in KiB.
    pub(super) batch_texts: Arc<Semaphore>,
    scope: CacheScope,
}

impl Scorer {
    /// Puts the parts together; `cache_bytes` are for token ids and neighbours that were made before. Principals with names share
    /// no cache.
    pub fn new(
        engine: Engine,
        token_counts: Vec<Arc<Counts>>,
        workers: Workers,
        cache_bytes: u64,
        text_limit: u64,
    ) -> Self {
        Self {
            engine,
            token_counts: token_counts.into(),
            workers,
            // Ids and offsets take twice the room of what is kept of neighbours.
            encodings: TextCache::new(cache_bytes / 3 * 2, |encoded| {
                size_of_val(&*encoded.ids) + size_of_val(&*encoded.offsets)
            }),
            substitutions: TextCache::new(cache_bytes / 3, |ranked| size_of_val(&*ranked.substitutions)),
            text_limit,
            batch_texts: Arc::new(Semaphore::new(MOST_BATCH_KIB as usize)),
            scope: CacheScope::default(),
        }
    }

    /// The same, where principals find in the caches what others have asked if `is_shared` holds.
    #[must_use]
    pub fn sharing_cache(self, is_shared: bool) -> Self {
        self.within(CacheScope { is_shared, ..self.scope.clone() })
    }

    /// The same scorer as the principal of a name uses it; without a name where that is empty.
    #[must_use]
    pub fn called_by(&self, name: &str) -> Self {
        self.within(CacheScope { principal: Principal::new(name, false), ..self.scope.clone() })
    }

    /// The same scorer for the texts of a dataset, whose part of the caches [`Scorer::forget`] empties; for other texts if `None`.
    #[must_use]
    pub fn for_dataset(&self, dataset: Option<Uuid>) -> Self {
        self.within(CacheScope { dataset, ..self.scope.clone() })
    }

    fn within(&self, scope: CacheScope) -> Self {
        let (encodings, substitutions) = (self.encodings.within(&scope), self.substitutions.within(&scope));
        Self { encodings, substitutions, scope, ..self.clone() }
    }

    /// A request to a model by the principal that uses this scorer.
    pub(super) fn request(&self, model: &Model, class: Class, deadline: Option<Instant>) -> Request {
        let request = Request::new(model.id(), Arc::clone(&model.identity), class, deadline);
        request.asked_by(&self.scope.principal, self.scope.key(&model.identity))
    }

    /// Submits a request: of the interactive class it is admitted whole or refused, of the batch class it waits for room.
    pub(super) async fn submit(&self, request: Request) -> Result<PendingRequest, Refusal> {
        match request.class {
            Class::Interactive => self.engine.submit(request),
            Class::Batch => self.engine.submit_when_room(request).await,
        }
    }

    pub fn pool(&self) -> &Pool {
        self.engine.pool()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Drops from memory everything made of the texts of a dataset: token ids, neighbours and statistics. The statistics on disk cannot be
    /// found or read without the dataset's key.
    pub fn forget(&self, dataset: Uuid) {
        let suffix: Arc<str> = CacheScope::dataset_suffix(dataset).into();
        self.encodings.forget(Arc::clone(&suffix));
        self.substitutions.forget(Arc::clone(&suffix));
        self.engine.forget_statistics(suffix);
    }

    pub fn workers(&self) -> &Workers {
        &self.workers
    }

    /// Returns the names that methods may refer to in a request for a model; `models` are the ids of all models.
    pub fn scope<'a>(
        &'a self,
        models: &'a [Arc<str>],
        model: Option<&'a Declaration>,
        audit: bool,
        neighbors: bool,
    ) -> Scope<'a> {
        Scope {
            models: models.iter().map(|id| &**id).collect(),
            model: model.map(|model| model.id.as_str()),
            untunable: model.and_then(|model| self.untunable(model)),
            reference: model.and_then(|model| model.reference.as_deref()),
            base: model.and_then(|model| model.base.as_deref()),
            without_logits: self.without(models, Origin::gives_logits),
            without_first_choice: self.without(models, Origin::gives_first_choice),
            token_counts: self.token_counts.iter().map(|counts| counts.id.as_str()).collect(),
            audit,
            neighbors,
        }
    }

    /// Why no adapter of a model can be tuned, as far as that is known: where its files are not open, they may be found too large
    /// for their layers to be in memory.
    pub fn untunable(&self, model: &Declaration) -> Option<Untunable> {
        let opened = || self.pool().status_of(&model.id)?.model;
        match &model.origin {
            origin if origin.is_served() => Some(Untunable::Served),
            origin if origin.is_gguf() => Some(Untunable::Gguf),
            _ if model.layers == LayersChoice::Stream || opened().is_some_and(|model| model.is_streamed()) => {
                Some(Untunable::Streamed)
            }
            _ => None,
        }
    }

    /// The models whose origin does not give this.
    fn without<'a>(&self, models: &'a [Arc<str>], gives: fn(&Origin) -> bool) -> Vec<&'a str> {
        let lacks = |id: &str| self.pool().find(Some(id)).is_ok_and(|declaration| !gives(&declaration.origin));
        models.iter().map(|id| &**id).filter(|id| lacks(id)).collect()
    }

    pub fn token_counts(&self, id: &str) -> Option<&Arc<Counts>> {
        self.token_counts.iter().find(|counts| counts.id == id)
    }
}
