//! The adapters that fine-tunes made: they are in the store, and the pool knows them by name.

use crate::models::files::ModelFiles;
use crate::pool::{AdapterDeclaration, AdapterError, AdapterSource, Pool};
use crate::store::{AdapterName, AdapterRow, Store, StoreError};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How often the store is asked which adapters there are: other processes make and delete them as well.
const LOOK: Duration = Duration::from_secs(2);

/// Adapters of the store that the pool knows; cheap to clone.
#[derive(Clone)]
pub struct AdapterShelf {
    store: Store,
    pool: Pool,
    /// Those that are in the pool, by the job that made them.
    known: Arc<Mutex<BTreeMap<Uuid, AdapterName>>>,
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
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(id, AdapterName { model, name });
        Ok(())
    }

    /// Deletes an adapter that nobody uses, here and in the store; one of the settings is gone until the service starts again.
    ///
    /// # Errors
    /// [`AdapterError`], or that of the store; then it is still there.
    pub async fn remove(&self, model: &str, name: &str) -> Result<(), RemoveError> {
        if self.store.is_named(&crate::pool::adapted_id(model, name)).await? {
            return Err(AdapterError::InUse(crate::pool::adapted_id(model, name)).into());
        }
        self.pool.close_adapter(model, name)?;
        let name = AdapterName { model: model.to_owned(), name: name.to_owned() };
        self.store.delete_adapter(&name).await?;
        self.known.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, known| *known != name);
        self.pool.remove_adapter(&name.model, &name.name)?;
        Ok(())
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

    /// Adds what is new in the store, and removes what was not there at the last look either: one that was just made comes into
    /// the pool first. Gives what is not there now.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn look(&self, absent: &HashSet<Uuid>) -> Result<HashSet<Uuid>, StoreError> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let rows = self.store.adapters().await?;
        for row in rows.iter().filter(|row| !known.contains_key(&row.id)) {
            let AdapterName { model, name } = &row.name;
            match self.add(row) {
                Ok(()) => tracing::info!(model, name, "adapter of the store"),
                // One of the settings has the name, or this process has no such model.
                Err(error) => tracing::debug!(model, name, %error, "an adapter of the store is not used"),
            }
        }
        let gone = known.iter().filter(|(id, _)| rows.iter().all(|row| row.id != **id));
        let gone: Vec<(Uuid, AdapterName)> = gone.map(|(id, name)| (*id, name.clone())).collect();
        for (id, AdapterName { model, name }) in gone.iter().filter(|(id, _)| absent.contains(id)) {
            // One that is in use goes at a later look.
            if self.pool.remove_adapter(model, name).is_ok() {
                self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
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
