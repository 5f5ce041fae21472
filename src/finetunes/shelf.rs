//! The adapters that fine-tunes made: they are in the store, and the pool knows them by name.

use crate::pool::{AdapterDeclaration, AdapterError, AdapterSource, Pool, adapted_id};
use crate::store::{AdapterName, AdapterRow, Store, StoreError};
use lm::models::files::ModelFiles;
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Interval at which the store is asked which adapters there are: other processes make and delete them as well.
const LOOK: Duration = Duration::from_secs(2);
/// Maximum time to store the end of a job.
const LONGEST_END: Duration = Duration::from_secs(600);

/// Adapters of the store that the pool knows; cheap to clone.
#[derive(Clone)]
pub struct AdapterShelf {
    store: Store,
    pool: Pool,
    /// Those that are in the pool, by the job that made them.
    known: Arc<Mutex<BTreeMap<Uuid, KnownAdapter>>>,
}

/// An adapter that is in the pool.
#[derive(Clone, Debug)]
struct KnownAdapter {
    name: AdapterName,
    /// When it came there.
    since: Instant,
    /// True if it was seen in the store. One that was just made comes there with the end of its job.
    is_stored: bool,
}

impl AdapterShelf {
    /// The adapters of this store, for this pool.
    #[must_use]
    pub fn new(store: Store, pool: Pool) -> Self {
        Self { store, pool, known: Arc::default() }
    }

    /// Has the pool know an adapter, whose files are in the store by the time somebody names it.
    ///
    /// # Errors
    /// Where the model is gone, or has another adapter of the name.
    pub fn add(&self, adapter: &AdapterRow) -> Result<(), AdapterError> {
        let AdapterRow { id, name: AdapterName { model, name }, base_digest } = adapter.clone();
        let store = self.store.clone();
        let fetch = Arc::new(move || fetched(store.clone(), id));
        let source = AdapterSource::Fetched { base_digest, fetch: Arc::new(move || Box::pin(fetch())) };
        self.pool.add_adapter(&model, AdapterDeclaration { name: name.clone(), source })?;
        let known = KnownAdapter { name: AdapterName { model, name }, since: Instant::now(), is_stored: false };
        self.known().insert(id, known);
        Ok(())
    }

    /// Deletes an adapter that nobody uses, here and in the store; one of the settings is gone until the service starts again.
    ///
    /// # Errors
    /// [`AdapterError`], or that of the store; then it is still there.
    pub async fn remove(&self, model: &str, name: &str) -> Result<(), RemoveError> {
        let closed = self.pool.close_adapter(model, name);
        let (id, name) = (adapted_id(model, name), AdapterName { model: model.to_owned(), name: name.to_owned() });
        let is_known = self.known().values().any(|known| known.name == name);
        let is_stored = self.store.has_adapter(&name).await?;
        match closed {
            // The pool was not told of one that is damaged.
            Err(AdapterError::Unknown { .. }) if is_stored => {}
            closed => closed?,
        }
        // One that is known and not stored comes there with the end of its job.
        if (is_known && !is_stored) || self.store.is_named(&id).await? {
            return Err(AdapterError::InUse(id).into());
        }
        let declaration = match self.pool.remove_adapter(&name.model, &name.name) {
            Err(AdapterError::Unknown { .. }) if is_stored => None,
            removed => Some(removed?),
        };
        if let Err(error) = self.store.delete_adapter(&name).await {
            if let Some(declaration) = declaration {
                // Fails only where another has taken its place, or the model is gone.
                let _ = self.pool.add_adapter(&name.model, AdapterDeclaration::clone(&declaration));
            }
            return Err(error.into());
        }
        self.known().retain(|_, known| known.name != name);
        Ok(())
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Uuid, KnownAdapter>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the pool know the adapters of the store, and those that other processes make, until the service ends.
    pub async fn keep_up(self, closing: CancellationToken) {
        let mut absent = HashSet::new();
        let keeping = async {
            loop {
                match self.look(&absent).await {
                    Ok(now) => absent = now,
                    Err(error) => tracing::warn!(%error, "the adapters of the store cannot be listed now"),
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        closing.run_until_cancelled(keeping).await;
    }

    /// Adds what is new in the store, and removes what was there and is not, now and at the last look. Gives what is not there.
    pub async fn look(&self, absent: &HashSet<Uuid>) -> Result<HashSet<Uuid>, StoreError> {
        let rows = self.store.adapters().await?;
        for row in &rows {
            if let Some(known) = self.known().get_mut(&row.id) {
                known.is_stored = true;
                continue;
            }
            let AdapterName { model, name } = &row.name;
            match self.add(row) {
                Ok(()) => tracing::info!(model, name, "adapter of the store"),
                // One of the settings has the name, or this process has no such model.
                Err(error) => tracing::debug!(model, name, %error, "an adapter of the store is not used"),
            }
        }
        let is_gone = |(id, known): &(&Uuid, &KnownAdapter)| {
            let may_come = !known.is_stored && known.since.elapsed() < LONGEST_END;
            !may_come && rows.iter().all(|row| row.id != **id)
        };
        let gone: Vec<(Uuid, AdapterName)> =
            self.known().iter().filter(is_gone).map(|(id, known)| (*id, known.name.clone())).collect();
        for (id, AdapterName { model, name }) in gone.iter().filter(|(id, _)| absent.contains(id)) {
            // One that is in use goes at a later look.
            if self.pool.remove_adapter(model, name).is_ok() {
                self.known().remove(id);
            }
        }
        Ok(gone.into_iter().map(|(id, _)| id).collect())
    }
}

/// Why an adapter is not removed.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

async fn fetched(store: Store, id: Uuid) -> Result<ModelFiles, String> {
    let files = store.adapter_files(id).await.map_err(|error| error.to_string())?;
    if files.is_empty() { Err("its files are gone".to_owned()) } else { Ok(ModelFiles::Memory(files.into())) }
}
