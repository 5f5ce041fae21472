//! Models coming to a device and leaving it, and the memory they take.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use super::Device;
use super::forward::panic_message;
use super::loaded::Loaded;
use crate::engine::ModelSource;
use crate::engine::memory::{Tenant, eviction_order, evictions};
use crate::models::{self, ModelError};

impl Device<'_> {
    /// Loads a model, after others made room for it where that is needed.
    ///
    /// Whatever goes wrong while loading is the model's failure: were the device itself lost, the next forward pass would
    /// say so, and a file that cannot be read must not end a service that runs other models. That pass may be one that
    /// measures the model.
    pub(super) fn load(&mut self, model: usize, source: Arc<ModelSource>) -> ControlFlow<()> {
        let started = Instant::now();
        let loaded = catch_unwind(AssertUnwindSafe(|| self.try_load(model, &source)));
        let loaded = loaded.unwrap_or_else(|panic| Err(format!("loading panicked: {}", panic_message(&*panic))));
        let result = loaded.map(|loaded| {
            self.loaded[model] = Some(Loaded::new(loaded, source, self.max_batch_tokens));
        });
        if result.is_err() {
            // What was loaded of it before it failed.
            (self.trim)();
        }
        self.fit_batches();
        if let Err(reason) = self.choose_budget(model) {
            self.shared.lose_device(self.seat.device, &reason);
            return ControlFlow::Break(());
        }
        self.fit_batches();
        self.report(model, started, result);
        ControlFlow::Continue(())
    }

    fn try_load(&mut self, model: usize, source: &ModelSource) -> Result<models::LoadedModel, String> {
        for victim in self.room_for(model, source)? {
            self.evict(victim);
        }
        loop {
            match (source.load)(self.seat.device) {
                Ok(loaded) => return Ok(loaded),
                // The books are estimates. As long as there is something to give, give it.
                Err(error @ ModelError::OutOfMemory(_)) => {
                    let order = self.with_tenants(eviction_order);
                    let victim = order.first().ok_or_else(|| error.to_string())?;
                    self.evict(*victim);
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn report(&self, model: usize, started: Instant, result: Result<(), String>) {
        let (now, took) = (Instant::now(), started.elapsed());
        let (id, device, seconds) = (&self.shared.models[model].id, &self.name, took.as_secs_f64());
        let meters = &self.shared.meters.models[model];
        match &result {
            Ok(()) => {
                let budget = self.loaded[model].as_ref().map(|loaded| (loaded.budget(), loaded.wanted().1.name()));
                let (batch_tokens, budget) = budget.unwrap_or_default();
                tracing::info!(model = id, device, seconds, batch_tokens, budget, "model loaded");
                meters.loads_ok.increment(1);
                self.shared.board.note(|facts| facts.models[model].last_used = Some(now));
            }
            Err(reason) => {
                tracing::error!(model = id, device, reason, "model failed to load");
                meters.loads_failed.increment(1);
                self.shared.board.note(|facts| facts.last_error = Some((now, reason.clone())));
            }
        }
        self.shared.change(|books| books.end_load(model, self.seat.device, result, now, took));
    }

    /// Which models make room for this one.
    fn room_for(&self, model: usize, source: &ModelSource) -> Result<Vec<usize>, String> {
        let slot = &self.shared.models[model];
        let newcomer = Tenant {
            model,
            id: &slot.id,
            weights: source.weight_bytes,
            activation: &*source.activation_bytes,
            pinned: true,
            in_use: true,
            last_used: None,
        };
        self.with_tenants(|residents| evictions(&newcomer, residents, self.memory, self.max_batch_tokens))
    }

    /// Hands the models on this device to a function of them.
    fn with_tenants<R>(&self, with: impl FnOnce(&[Tenant<'_>]) -> R) -> R {
        let residents = self.loaded.iter().enumerate().filter_map(|(model, loaded)| Some((model, loaded.as_ref()?)));
        let in_use = self.shared.with_books(|books| {
            let in_use = (0..self.loaded.len()).map(|model| books.is_in_use(model));
            in_use.collect::<Vec<_>>()
        });
        let tenants: Vec<_> = residents
            .map(|(model, loaded)| {
                let (slot, source) = (&self.shared.models[model], loaded.source());
                Tenant {
                    model,
                    id: &slot.id,
                    weights: source.weight_bytes,
                    activation: &*source.activation_bytes,
                    pinned: slot.pinned || slot.eager,
                    in_use: in_use[model],
                    last_used: self.shared.board.read().models[model].last_used,
                }
            })
            .collect();
        with(&tenants)
    }

    fn evict(&mut self, model: usize) {
        let (id, device) = (&self.shared.models[model].id, &self.name);
        tracing::info!(model = id, device, "model makes room for another");
        self.drop_model(model);
        self.shared.meters.models[model].evictions.increment(1);
    }

    /// Drops a model that was unloaded by hand.
    pub(super) fn unload(&mut self, model: usize) {
        self.drop_model(model);
        self.fit_batches();
        tracing::info!(model = self.shared.models[model].id, device = self.name, "model unloaded");
    }

    /// Drops a model, gives its pages back, and only then says so.
    fn drop_model(&mut self, model: usize) {
        self.loaded[model] = None;
        self.shared.meters.models[model].budgets[self.seat.device].set(0.0);
        (self.trim)();
        self.shared.change(|books| books.models[model].leave(self.seat.device));
    }

    /// Bytes beside the weights.
    pub(super) fn room(&self) -> u64 {
        let weights = self.loaded.iter().flatten().map(|loaded| loaded.source().weight_bytes);
        self.memory.saturating_sub(weights.fold(0, u64::saturating_add))
    }

    /// Sets the batches of all models to what fits beside the weights.
    fn fit_batches(&mut self) {
        let room = self.room();
        for (model, loaded) in self.loaded.iter_mut().enumerate() {
            let Some(loaded) = loaded else { continue };
            if let Some(tokens) = loaded.fit_to(room) {
                let (id, (wanted, _)) = (&self.shared.models[model].id, loaded.wanted());
                tracing::info!(
                    model = id,
                    device = self.name,
                    tokens,
                    wanted,
                    "batch budget set to what memory allows"
                );
            }
            loaded.show_budget(model, self.seat.device, self.shared);
        }
    }
}
