//! Models coming to a device and leaving it, and the memory they take.

use super::memory::{Resident, eviction_order, evictions};
use super::resident::ResidentModel;
use super::thread::Device;
use super::watch::PassWatch;
use crate::engine::record::ModelRecord;
use crate::pool::{Lifecycle, Model};
use lm::models::{self, ModelError};
use lm::panics::panic_message;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

impl Device<'_> {
    /// Loads a model, after others made room for it where that is needed.
    ///
    /// Whatever goes wrong while loading is the model's failure: were the device itself lost, the next forward pass would
    /// say so, and a file that cannot be read must not end a service that runs other models.
    pub(super) fn load(&mut self, id: &Arc<str>, model: Arc<Model>) {
        let started = Instant::now();
        let record = self.shared.record(id, &model.devices);
        let mut evicted = false;
        let loaded = catch_unwind(AssertUnwindSafe(|| self.try_load(id, &model, &mut evicted)));
        let loaded = loaded.unwrap_or_else(|panic| Err(format!("loading panicked: {}", panic_message(&*panic))));
        let result = loaded.map(|loaded| {
            let budget = self.residents.max_batch_tokens;
            let wanted = if model.is_streamed() { self.slot.max_streamed_tokens.max(budget) } else { budget };
            let watch = PassWatch::new(Arc::clone(id), self.seat.device, Arc::clone(self.shared));
            let resident = ResidentModel::new(loaded, model, Arc::clone(&record), budget, wanted, watch);
            self.residents.models.insert(Arc::clone(id), resident);
        });
        if result.is_err() {
            // Frees what was loaded of it before it failed.
            (self.slot.trim)();
        }
        self.fit_batches();
        if evicted && result.is_ok() {
            self.seat.note_exchange(Instant::now(), started.elapsed());
        }
        self.report(id, &record, started, result);
    }

    /// `evicted` tells whether another model went for it.
    fn try_load(&mut self, id: &str, model: &Model, evicted: &mut bool) -> Result<models::LoadedModel, String> {
        for victim in self.room_for(id, model)? {
            self.evict(&victim);
            *evicted = true;
        }
        loop {
            match (model.load)(self.seat.device) {
                Ok(loaded) => return Ok(loaded),
                // The books are estimates. As long as there is something to give, give it.
                Err(error @ ModelError::OutOfMemory(_)) => {
                    let first = eviction_order(&self.residents()).first().map(|first| (*first).to_owned());
                    self.evict(&first.ok_or_else(|| error.to_string())?);
                    *evicted = true;
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn report(&mut self, id: &str, record: &ModelRecord, started: Instant, result: Result<(), String>) {
        let (now, took) = (Instant::now(), started.elapsed());
        let (device, seconds) = (&self.slot.name, took.as_secs_f64());
        match &result {
            Ok(()) => {
                let batch_tokens = self.residents.models.get(id).map(|resident| resident.budget);
                tracing::info!(model = id, device, seconds, batch_tokens, "model loaded");
                record.metrics.loads_ok.increment(1);
                record.note_use(now);
            }
            Err(reason) => {
                record.metrics.loads_failed.increment(1);
                self.shared.facts().last_error = Some((now, reason.clone()));
            }
        }
        self.show_memory();
        let (index, reason) = (self.seat.device, result.as_ref().err().cloned());
        let retry_at = self.shared.change(|scheduler, models| {
            scheduler.finish_load(models, id, index, result, now, took);
            models.get(id).and_then(Lifecycle::retry_at)
        });
        if let Some(reason) = reason {
            let retry_seconds = retry_at.map(|at| at.saturating_duration_since(now).as_secs_f64());
            tracing::error!(model = id, device, reason, retry_seconds, "model failed to load");
        }
    }

    fn room_for(&self, id: &str, model: &Model) -> Result<Vec<String>, String> {
        let newcomer = Resident {
            id,
            weights: model.weight_bytes,
            activation: &*model.activation_bytes,
            pinned: true,
            in_use: true,
            last_used: None,
        };
        let (memory, max_batch_tokens) = (self.residents.memory(), self.residents.max_batch_tokens);
        let evicted = evictions(&newcomer, &self.residents(), memory, max_batch_tokens)?;
        Ok(evicted.into_iter().map(str::to_owned).collect())
    }

    fn residents(&self) -> Vec<Resident<'_>> {
        let models = self.shared.pool.lock();
        let residents = self.residents.models.iter().map(|(id, resident)| {
            let lifecycle = models.get(id);
            Resident {
                id,
                weights: resident.model.weight_bytes,
                activation: &*resident.model.activation_bytes,
                pinned: lifecycle.is_some_and(|model| model.declaration().stays()),
                in_use: lifecycle.is_some_and(Lifecycle::is_in_use),
                last_used: resident.record.last_used(),
            }
        });
        residents.collect()
    }

    fn evict(&mut self, id: &str) {
        let device = &self.slot.name;
        tracing::info!(model = id, device, "model makes room for another");
        if let Some(resident) = self.drop_model(id) {
            resident.metrics.evictions.increment(1);
        }
    }

    /// Drops a model that was unloaded by hand.
    pub(super) fn unload(&mut self, id: &str) {
        self.drop_model(id);
        self.fit_batches();
        tracing::info!(model = id, device = self.slot.name, "model unloaded");
    }

    /// Drops a model, gives its pages back, and only then says so; gives its record.
    fn drop_model(&mut self, id: &str) -> Option<Arc<ModelRecord>> {
        let record = Arc::clone(&self.residents.models.remove(id)?.record);
        record.metrics.budgets[self.seat.device].set(0.0);
        (self.slot.trim)();
        self.show_memory();
        let device = self.seat.device;
        self.shared.change(|_, models| {
            if let Some(model) = models.get_mut(id) {
                model.leave(device);
            }
        });
        Some(record)
    }

    fn show_memory(&self) {
        let used = self.residents.weight_bytes().saturating_add(self.residents.reserved());
        self.shared.metrics.memory_used[self.seat.device].set(used as f64);
    }

    /// Fits the batches anew where what is reserved for something else has changed.
    pub(super) fn heed_reservations(&mut self) {
        let reserved = self.residents.reserved();
        if std::mem::replace(&mut self.residents.fitted_beside, reserved) != reserved {
            self.fit_batches();
            self.show_memory();
        }
    }

    /// Sets the batches of all models to what fits beside the weights.
    fn fit_batches(&mut self) {
        let (room, wanted) = (self.residents.room(), self.residents.max_batch_tokens);
        for (id, resident) in &mut self.residents.models {
            if let Some(tokens) = resident.fit_to(room) {
                tracing::info!(
                    model = &**id,
                    device = self.slot.name,
                    tokens,
                    wanted,
                    "batch budget set to what memory allows"
                );
            }
            resident.show_budget(self.seat.device);
        }
    }
}
