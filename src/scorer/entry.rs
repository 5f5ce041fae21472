//! A configured model: its name from the start, its files once somebody needs them.

use super::model::Model;
use super::origin::{OpenError, Origin};
use crate::config::Dtype;
use crate::engine::{Engine, ModelSlot};
use crate::hub::{DownloadProgress, Hub, HubError};
use crate::models::device::ComputeDevice;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// A failed opening is not tried again by requests before this long, so that a broken model costs the others little.
const LEAST_PAUSE: Duration = Duration::from_secs(1);

/// What the settings say of a model.
#[derive(Clone, Debug)]
pub struct Declared {
    pub id: String,
    pub origin: Origin,
    pub dtype: Dtype,
    /// The default reference model.
    pub reference: Option<String>,
    pub eager: bool,
    pub pinned: bool,
    /// The devices it may run on, as indexes into those of the engine.
    pub places: Vec<usize>,
}

impl Declared {
    /// The same for the engine.
    pub fn slot(&self) -> ModelSlot {
        let Self { id, eager, pinned, places, .. } = self;
        ModelSlot { id: id.clone(), eager: *eager, pinned: *pinned, devices: places.clone() }
    }
}

/// What opening needs, shared by all models.
pub struct Opener {
    pub engine: Engine,
    pub devices: Arc<[ComputeDevice]>,
    /// Or why its settings cannot be used, which only matters to models from there.
    pub hub: Result<Hub, HubError>,
}

/// A configured model.
pub struct Entry {
    pub declared: Declared,
    opener: Arc<Opener>,
    opening: watch::Sender<Opening>,
}

/// How far the opening of a model's files is.
#[derive(Clone)]
pub enum Opening {
    /// Nobody has needed them.
    Closed,
    /// They are being fetched or read.
    Running(Arc<DownloadProgress>),
    Open(Arc<Model>),
    /// The last attempt failed; requests try again after a pause.
    Failed {
        error: OpenError,
        retry_at: Instant,
    },
}

/// Whether a failure of a moment ago is tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    AfterPause,
    Now,
}

impl Entry {
    /// A model whose files are closed.
    pub fn new(declared: Declared, opener: Arc<Opener>) -> Self {
        Self { declared, opener, opening: watch::Sender::new(Opening::Closed) }
    }

    /// What requests call it.
    pub fn id(&self) -> &str {
        &self.declared.id
    }

    /// How far its opening is.
    pub fn opening(&self) -> Opening {
        self.opening.borrow().clone()
    }

    /// The model, opened now if it was not; all who ask meanwhile wait for the same attempt, which goes on when they go.
    ///
    /// # Errors
    /// Why the files cannot be opened.
    pub async fn open(self: &Arc<Self>, retry: Retry) -> Result<Arc<Model>, OpenError> {
        self.begin(retry);
        self.outcome().await
    }

    async fn outcome(&self) -> Result<Arc<Model>, OpenError> {
        let mut changes = self.opening.subscribe();
        loop {
            match &*changes.borrow_and_update() {
                Opening::Open(model) => return Ok(Arc::clone(model)),
                Opening::Failed { error, .. } => return Err(error.clone()),
                Opening::Running(_) | Opening::Closed => {}
            }
            // The sender is ours, so a change always comes.
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// Opens the files anew, so that what has changed on disk since is seen; a model that is loaded meanwhile stays what
    /// it is.
    ///
    /// # Errors
    /// As [`Entry::open`].
    pub async fn reopen(self: &Arc<Self>) -> Result<Arc<Model>, OpenError> {
        self.begin_if(|opening| !matches!(opening, Opening::Running(_)));
        self.outcome().await
    }

    /// Starts opening unless that is done, under way, or failed a moment ago.
    pub fn begin(self: &Arc<Self>, retry: Retry) {
        self.begin_if(|opening| match opening {
            Opening::Closed => true,
            Opening::Failed { retry_at, .. } => retry == Retry::Now || Instant::now() >= *retry_at,
            Opening::Running(_) | Opening::Open(_) => false,
        });
    }

    fn begin_if(self: &Arc<Self>, begins: impl FnOnce(&Opening) -> bool) {
        let (progress, mut before) = (Arc::new(DownloadProgress::default()), None);
        let begun = self.opening.send_if_modified(|opening| {
            let begins = begins(opening);
            if begins {
                before = Some(std::mem::replace(opening, Opening::Running(Arc::clone(&progress))));
            }
            begins
        });
        if begun {
            let entry = Arc::clone(self);
            tokio::task::spawn_blocking(move || entry.run(&progress, before));
        }
    }

    fn run(&self, progress: &DownloadProgress, before: Option<Opening>) {
        let started = Instant::now();
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(progress)));
        let opening = match (attempt.unwrap_or_else(|panic| Err(OpenError::Panicked(message(&*panic)))), before) {
            (Ok(model), _) => Opening::Open(Arc::new(model)),
            (Err(OpenError::Changed), Some(Opening::Open(model))) => Opening::Open(model),
            (Err(error), _) => {
                // It is logged there. The id is the engine's own: it was declared under it.
                let _ = self.opener.engine.opening_failed(self.id(), error.to_string());
                Opening::Failed { error, retry_at: Instant::now() + started.elapsed().max(LEAST_PAUSE) }
            }
        };
        self.opening.send_replace(opening);
    }

    fn attempt(&self, progress: &DownloadProgress) -> Result<Model, OpenError> {
        let Opener { engine, devices, hub } = &*self.opener;
        let Declared { id, origin, dtype, places, .. } = &self.declared;
        let (model, source) = Model::open(id, origin.find(hub.as_ref(), progress)?, *dtype, devices, places)?;
        let (digest, weight_bytes) = (&model.digest, model.weight_bytes);
        tracing::info!(model = id, architecture = model.architecture, weight_bytes, digest, "model opened");
        // The id is the engine's own: it was declared under it.
        if engine.register(id, source).unwrap_or(false) { Ok(model) } else { Err(OpenError::Changed) }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned())
}
