//! Opening the files of models, on threads that may block.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::adapter_id::split;
use super::declaration::Declaration;
use super::error::{OpenError, UnknownModel};
use super::handle::Pool;
use super::lifecycle::Lifecycle;
use super::model::Model;
use super::state::{Fetch, Retry};
use crate::telemetry::names;
use lm::panics::panic_message;

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
    ///
    /// # Errors
    /// Why the files cannot be opened.
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

    /// How an attempt to open the model ended; none while it is under way.
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

    /// Opens the files on a thread that may block.
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
        (self.opener())(declaration, fetch.previous.clone(), &fetch.progress)
    }

    /// Opens the files on this thread.
    #[cfg(test)]
    pub(crate) fn open_now(&self, id: &str) {
        let fetch = self.change(|models| models.fetch(id, Retry::Now, Instant::now()));
        if let Some(fetch) = fetch {
            self.run(id, &fetch);
        }
    }
}
