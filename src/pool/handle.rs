//! The handle of the pool: its lock, questions that are answered at once, and models coming and going by hand.

use super::adapter::AdapterStatus;
use super::declaration::{Declaration, adapted_id, split};
use super::error::{AddError, Ended, FindError, LoadError, OpenError, UnknownModel, UnloadError};
use super::lifecycle::Lifecycle;
use super::model::Model;
use super::models::{Leased, Models};
use super::signal::Signal;
use super::state::{ModelState, Retry};
use lm::hub::DownloadProgress;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// Opens the files of a model: what is declared, what was open before, and how far the download is. Called on a thread that
/// may block. Where the files of before have not changed it gives the same model again.
pub type Opener =
    Arc<dyn Fn(&Declaration, Option<Arc<Model>>, &DownloadProgress) -> Result<Arc<Model>, OpenError> + Send + Sync>;

/// The models that there are. Clones are handles of the same pool.
#[derive(Clone, Debug)]
pub struct Pool(pub(super) Arc<PoolInner>);

pub(super) struct PoolInner {
    models: Mutex<Models>,
    signal: Arc<Signal>,
    default: Option<String>,
    pub(super) opener: Opener,
    /// Held while an adapter's files are opened.
    pub(super) adapter_turn: tokio::sync::Mutex<()>,
}

#[derive(Clone, Debug)]
pub struct ModelStatus {
    pub declaration: Arc<Declaration>,
    pub state: ModelState,
    /// Progress of its download; `None` unless its files are being opened.
    pub progress: Option<Arc<DownloadProgress>>,
    pub model: Option<Arc<Model>>,
    /// The devices that hold it, as indexes into those of the engine.
    pub resident: Vec<usize>,
    pub loaded_at: Option<Instant>,
    pub adapters: Vec<AdapterStatus>,
}

impl Pool {
    /// Creates an empty pool for an engine with `devices` devices. `default` is the id that serves requests which name no model;
    /// without it, the only model of a pool of one does.
    pub fn new(devices: usize, default: Option<String>, opener: Opener) -> Self {
        let signal = Arc::new(Signal::default());
        let models = Mutex::new(Models::new(devices, Arc::clone(&signal)));
        let adapter_turn = tokio::sync::Mutex::default();
        Self(Arc::new(PoolInner { models, signal, default, opener, adapter_turn }))
    }

    /// Declares a model. Its files are closed until somebody needs them.
    pub fn add(&self, declaration: Declaration) -> Result<(), AddError> {
        self.change(|models| models.add(declaration))
    }

    /// The model that a request names, or the default. An adapted model is declared as its base, under its own id.
    pub fn find(&self, id: Option<&str>) -> Result<Arc<Declaration>, FindError> {
        let models = self.lock();
        let known = || ids(&models).map(|id| id.to_string()).collect::<Vec<_>>().join(", ");
        let default = self.default_of(&models);
        let id = id.or(default.as_deref()).ok_or_else(|| FindError::NoDefault { known: known() })?;
        let unknown = || FindError::Unknown { id: id.to_owned(), known: known() };
        let declaration = models.get(id).ok_or_else(unknown)?.declaration();
        match split(id) {
            (_, None) => Ok(Arc::clone(declaration)),
            _ if !ids(&models).any(|known| *known == *id) => Err(unknown()),
            // A fine-tune is compared with its base.
            (base, Some(_)) => {
                let base = Some(base.to_owned());
                let reference = base.clone();
                Ok(Arc::new(Declaration { id: id.to_owned(), reference, base, ..Declaration::clone(declaration) }))
            }
        }
    }

    pub fn default_id(&self) -> Option<String> {
        self.default_of(&self.lock())
    }

    fn default_of(&self, models: &Models) -> Option<String> {
        let mut ids = models.iter().map(|(id, _)| id.to_string());
        match &self.0.default {
            Some(default) => Some(default.clone()),
            None => ids.next().filter(|_| ids.next().is_none()),
        }
    }

    /// The ids of all models in the order of their declarations, each before those of its adapters.
    pub fn ids(&self) -> Vec<Arc<str>> {
        ids(&self.lock()).collect()
    }

    /// Every model at a glance, in the order of their declarations.
    pub fn status(&self) -> Vec<ModelStatus> {
        self.lock().iter().map(|(_, lifecycle)| ModelStatus::from(lifecycle)).collect()
    }

    pub fn status_of(&self, id: &str) -> Option<ModelStatus> {
        self.lock().get(id).map(ModelStatus::from)
    }

    /// The model, and a lease of it for a request whose token ids were made for this `identity`.
    ///
    /// `None` where its files are not open, or were opened anew since; the inner error says why nothing can be run now though
    /// they are open.
    pub(crate) fn lease(&self, id: &str, identity: &str) -> Result<Option<Leased>, UnknownModel> {
        self.lock().lease(id, identity, Instant::now())
    }

    /// Takes no more work, for this reason; the first reason stays.
    pub(crate) fn end(&self, ended: Ended) {
        self.change(|models| models.end(ended));
    }

    pub(crate) fn ended(&self) -> Option<Ended> {
        self.lock().ended().cloned()
    }

    pub(crate) fn signal(&self) -> &Signal {
        &self.0.signal
    }

    /// The models, locked. Whoever changes something that others wait for raises the signal afterwards.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Models> {
        self.0.models.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the models and says so.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Models) -> R) -> R {
        let result = change(&mut self.lock());
        self.0.signal.raise();
        result
    }

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

fn ids(models: &Models) -> impl Iterator<Item = Arc<str>> {
    models.iter().flat_map(|(id, lifecycle)| {
        let adapters = lifecycle.adapters.names().map(|name| adapted_id(id, name).into());
        std::iter::once(Arc::clone(id)).chain(adapters)
    })
}

impl From<&Lifecycle> for ModelStatus {
    fn from(lifecycle: &Lifecycle) -> Self {
        Self {
            declaration: Arc::clone(lifecycle.declaration()),
            state: lifecycle.state(),
            progress: lifecycle.progress().cloned(),
            model: lifecycle.model().cloned(),
            resident: lifecycle.resident(),
            loaded_at: lifecycle.loaded_at(),
            adapters: lifecycle.adapters.status(lifecycle.model()),
        }
    }
}

impl fmt::Debug for PoolInner {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Pool").field("default", &self.default).finish_non_exhaustive()
    }
}
