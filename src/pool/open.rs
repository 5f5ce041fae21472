//! Opening the files of models and of adapters, on threads that may block, and again where that failed.

use super::adapter::{AdapterDeclaration, AdapterSource};
use super::declaration::{Declaration, adapted_id, split};
use super::error::{AdapterError, Ended, OpenError, UnknownModel};
use super::handle::Pool;
use super::lifecycle::Lifecycle;
use super::model::Model;
use super::state::{Fetch, Retry};
use crate::telemetry::names;
use lm::models::ModelError;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::panics::panic_message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

impl Pool {
    /// Starts to open every model that is eager or at hand: a fault in its files shows at once, and so does its digest. What
    /// would have to be downloaded for a lazy one waits for its first request. Eager models that fail are tried again by
    /// themselves from now on.
    pub fn begin_opening(&self) {
        tokio::spawn(self.clone().retry_failed());
        for status in self.status() {
            let declaration = &status.declaration;
            if declaration.eager || declaration.origin.repository().is_none() {
                self.begin(&declaration.id, Retry::AfterPause);
            }
        }
    }

    /// The model, opened now if it was not. All who ask meanwhile wait for the same attempt, which goes on when they go. An
    /// id may name an adapter of the model, `<model>:<adapter>`.
    pub async fn open(&self, id: &str, retry: Retry) -> Result<Arc<Model>, OpenError> {
        let (base, adapter) = split(id);
        let model = self.open_model(base, retry).await?;
        match adapter {
            Some(name) => Ok(self.open_adapter(model, name).await?),
            None => Ok(model),
        }
    }

    async fn open_model(&self, id: &str, retry: Retry) -> Result<Arc<Model>, OpenError> {
        let mut retry = Some(retry);
        let attempt = || {
            // Asked again after every change: an unload, or a removal and another model of this id, may leave it closed.
            self.begin(id, retry.take().unwrap_or(Retry::AfterPause));
            self.opened(id)
        };
        self.signal().wait_for(attempt).await
    }

    /// Returns the result of an attempt to open the model; `None` while it is under way.
    fn opened(&self, id: &str) -> Option<Result<Arc<Model>, OpenError>> {
        let models = self.lock();
        let Some(lifecycle) = models.get(id) else { return Some(Err(UnknownModel(id.to_owned()).into())) };
        let error = || lifecycle.open_error().cloned().map(Err);
        lifecycle.model().map(|model| Ok(Arc::clone(model))).or_else(error)
    }

    fn begin(&self, id: &str, retry: Retry) {
        let fetch = self.lock().fetch(id, retry, Instant::now());
        if let Some(fetch) = fetch {
            self.signal().raise();
            self.spawn(id, fetch);
        }
    }

    pub(super) fn spawn(&self, id: &str, fetch: Fetch) {
        let (pool, id) = (self.clone(), id.to_owned());
        tokio::task::spawn_blocking(move || pool.run(&id, &fetch));
    }

    fn run(&self, id: &str, fetch: &Fetch) {
        let Some(declaration) = self.lock().get(id).map(Lifecycle::declaration).cloned() else { return };
        let started = Instant::now();
        let attempt = catch_unwind(AssertUnwindSafe(|| self.attempt(&declaration, fetch)));
        let result = attempt.unwrap_or_else(|panic| Err(OpenError::Panicked(panic_message(&*panic).to_owned())));
        let reason = result.as_ref().err().map(ToString::to_string);
        match &result {
            Ok(model) => {
                let (digest, weight_bytes) = (&model.info.digest, model.weight_bytes);
                tracing::info!(model = id, architecture = model.architecture, weight_bytes, digest, "model opened");
            }
            // Its removal has cancelled the download.
            Err(_) if self.lock().get(id).is_none_or(Lifecycle::is_removed) => {}
            // Counted first: who hears of it finds it counted.
            Err(_) => {
                metrics::counter!(names::ENGINE_LOADS, "model" => id.to_owned(), "outcome" => "failed").increment(1);
            }
        }
        let now = Instant::now();
        let retry_at = self.change(|models| {
            models.finish_fetch(id, fetch, result, now, started.elapsed());
            models.get(id).and_then(Lifecycle::retry_at)
        });
        if let Some(reason) = reason {
            let retry_seconds = retry_at.map(|at| at.saturating_duration_since(now).as_secs_f64());
            tracing::error!(model = id, reason, retry_seconds, "model cannot be opened");
        }
    }

    fn attempt(&self, declaration: &Declaration, fetch: &Fetch) -> Result<Arc<Model>, OpenError> {
        (self.0.opener)(declaration, fetch.previous.clone(), &fetch.progress)
    }

    #[cfg(test)]
    pub(crate) fn open_now(&self, id: &str) {
        let fetch = self.change(|models| models.fetch(id, Retry::Now, Instant::now()));
        if let Some(fetch) = fetch {
            self.run(id, &fetch);
        }
    }

    /// Begins every attempt when it is due, and ends with the pool.
    pub(super) async fn retry_failed(self) {
        let mut next = self.next_retry();
        while let Ok(due) = next {
            let changed = self.signal().wait_for(|| Some(self.next_retry()).filter(|next| *next != Ok(due)));
            next = match due {
                None => changed.await,
                Some(at) => match tokio::time::timeout_at(at.into(), changed).await {
                    Ok(changed) => changed,
                    Err(_) => self.retry_due(),
                },
            };
        }
    }

    /// Begins what is due, and says when the next attempt is.
    fn retry_due(&self) -> Result<Option<Instant>, Ended> {
        let fetches = self.change(|models| models.retry(Instant::now()));
        for (id, fetch) in fetches {
            self.spawn(&id, fetch);
        }
        self.next_retry()
    }

    fn next_retry(&self) -> Result<Option<Instant>, Ended> {
        self.lock().next_retry()
    }

    /// Declares an adapter of a model. Its files are closed until somebody needs them.
    pub fn add_adapter(&self, base: &str, declaration: AdapterDeclaration) -> Result<(), AdapterError> {
        self.change(|models| models.get_mut(base).ok_or_else(|| unknown(base))?.adapters.add(declaration))
    }

    /// Closes an adapter: its matrices leave the main memory now, and a device with its next batch. The next request opens it
    /// again.
    pub fn close_adapter(&self, base: &str, name: &str) -> Result<(), AdapterError> {
        self.change(|models| models.get_mut(base).ok_or_else(|| unknown(base))?.adapters.close(base, name))
    }

    /// Closes an adapter, and then there is no such adapter any more; gives what was declared.
    pub fn remove_adapter(&self, base: &str, name: &str) -> Result<Arc<AdapterDeclaration>, AdapterError> {
        self.change(|models| models.get_mut(base).ok_or_else(|| unknown(base))?.adapters.remove(base, name))
    }

    /// The base under an adapter, whose files are opened now if they were not. One adapter is opened at a time, so all who ask
    /// meanwhile get the same one.
    pub(super) async fn open_adapter(&self, base: Arc<Model>, name: &str) -> Result<Arc<Model>, AdapterError> {
        let _turn = self.0.adapter_turn.lock().await;
        let source = {
            let models = self.lock();
            let adapters = &models.get(base.id()).ok_or_else(|| unknown(base.id()))?.adapters;
            let declaration = adapters.declaration(base.id(), name)?;
            if let Some(open) = adapters.opened(name, &base) {
                return Ok(Arc::clone(open));
            }
            declaration.source.clone()
        };
        let id = adapted_id(base.id(), name);
        let fault = |reason: String| AdapterError::Files { id: id.clone(), reason };
        let files = match source {
            AdapterSource::Files(files) => files,
            AdapterSource::Fetched { base_digest, .. } if base_digest != base.info.digest => {
                return Err(fault("it was tuned on other files of the base than those that are open now".to_owned()));
            }
            AdapterSource::Fetched { fetch, .. } => fetch().await.map_err(fault)?,
        };
        let (under, owned) = (Arc::clone(&base), name.to_owned());
        let opened = tokio::task::spawn_blocking(move || opened_adapter(&under, &owned, &files)).await;
        let opened = opened.map_err(|panic| AdapterError::Panicked(panic.to_string()))?;
        let model = opened.map_err(|error| fault(error.to_string()))?;
        self.change(|models| {
            let lifecycle = models.get_mut(base.id()).ok_or_else(|| unknown(base.id()))?;
            lifecycle.adapters.keep(name, &base, Arc::new(model))
        })
    }
}

/// The base under the adapter in these files. The base's own files must still be those that it was opened from, and those of
/// the adapter may not change meanwhile.
fn opened_adapter(base: &Model, name: &str, files: &ModelFiles) -> Result<Model, ModelError> {
    let stamp = files.stamp()?;
    let here = base.local()?;
    let read = || Checkpoint::open(&here.files)?.adapter(files);
    let adapter = here.files.read_unchanged(&here.stamp, || files.read_unchanged(&stamp, read))?;
    Ok(base.under(name, adapter))
}

fn unknown(base: &str) -> AdapterError {
    AdapterError::UnknownModel(UnknownModel(base.to_owned()))
}
