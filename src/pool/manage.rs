//! Models coming and going by hand.

use tokio::sync::oneshot;

use super::adapter_id::split;
use super::error::{Ended, LoadError, UnknownModel, UnloadError};
use super::handle::Pool;
use super::state::Retry;

impl Pool {
    /// Loads a model to all its devices and waits for that; at once where they have it. Its files are opened first where they
    /// are not, and anew where they have changed on disk. All who ask at a time wait for the same attempt, which is made even
    /// where one has just failed. Dropping the future does not stop it. Where the id names an adapter, that is opened first.
    pub async fn load(&self, id: &str) -> Result<(), LoadError> {
        let (base, adapter) = split(id);
        if adapter.is_some() {
            self.open(id, Retry::Now).await.map_err(|error| LoadError::Failed(error.to_string()))?;
        }
        let (waiter, loaded) = oneshot::channel();
        if let Some(fetch) = self.change(|models| models.order(base, waiter))? {
            self.spawn(base, fetch);
        }
        loaded.await.unwrap_or_else(|_| Err(self.why_it_ended().into()))
    }

    /// Refuses new requests for a model, finishes those that were admitted, drops it from all its devices and waits for
    /// that. At once where it is not loaded. A later request loads it again, also an eager one. Dropping the future does not
    /// stop it. Where the id names an adapter, that alone is closed, unless a request uses it.
    pub async fn unload(&self, id: &str) -> Result<(), UnloadError> {
        match split(id) {
            (base, Some(name)) => Ok(self.close_adapter(base, name)?),
            (base, None) => self.drain(base, false).await,
        }
    }

    /// As [`Pool::unload`], and then there is no such model any more; its id is free again. A download that is under way is
    /// stopped.
    pub async fn remove(&self, id: &str) -> Result<(), UnloadError> {
        self.drain(id, true).await
    }

    async fn drain(&self, id: &str, remove: bool) -> Result<(), UnloadError> {
        let (waiter, drained) = oneshot::channel();
        self.change(|models| match models.ended() {
            _ if models.get(id).is_none() => Err(UnknownModel(id.to_owned()).into()),
            Some(ended) => Err(UnloadError::Ended(ended.clone())),
            None => Ok(models.drain(id, waiter, remove)?),
        })?;
        drained.await.map_err(|_| self.why_it_ended().into())
    }

    fn why_it_ended(&self) -> Ended {
        self.ended().unwrap_or(Ended::ShuttingDown)
    }
}
