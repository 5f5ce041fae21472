//! The engine's record of each model: its series, what is queued for it, its speed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::class::{Class, PerClass};
use super::metrics::ModelMetrics;
use super::rate::Rate;

/// One model.
#[derive(Debug)]
pub(super) struct ModelRecord {
    pub(super) id: Arc<str>,
    pub(super) metrics: ModelMetrics,
    /// Tokens admitted and not yet answered.
    queued: PerClass<AtomicUsize>,
    facts: Mutex<ModelFacts>,
}

/// Facts that the device threads learn of a model.
#[derive(Debug, Default)]
struct ModelFacts {
    rate: Option<Rate>,
    last_used: Option<Instant>,
}

impl ModelRecord {
    pub(super) fn queued(&self, class: Class) -> &AtomicUsize {
        self.queued.get(class)
    }

    /// Tokens of this class and of the more urgent ones, admitted and not yet answered.
    pub(super) fn queued_up_to(&self, class: Class) -> usize {
        self.queued.iter().take(class as usize + 1).map(|tokens| tokens.load(Ordering::Relaxed)).sum()
    }

    /// Returns its speed on one device in tokens per second; `None` if it was not measured lately.
    pub(super) fn tokens_per_second(&self, now: Instant) -> Option<f64> {
        self.lock().rate?.tokens_per_second(now)
    }

    /// When a load or a forward pass of it last ended.
    pub(super) fn last_used(&self) -> Option<Instant> {
        self.lock().last_used
    }

    /// Notes that a load or a forward pass has ended.
    pub(super) fn note_use(&self, now: Instant) {
        self.lock().last_used = Some(now);
    }

    /// Records a forward pass of `tokens` tokens under this token budget.
    pub(super) fn note_speed(&self, tokens: usize, budget: usize, took: Duration, now: Instant) {
        let mut facts = self.lock();
        facts.rate = Rate::observe(facts.rate, tokens, budget, took, now);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ModelFacts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The records of all models, by id.
#[derive(Debug)]
pub(super) struct Records {
    records: RwLock<HashMap<Arc<str>, Arc<ModelRecord>>>,
    device_names: Vec<String>,
}

impl Records {
    pub(super) fn new(device_names: Vec<String>) -> Self {
        Self { records: RwLock::default(), device_names }
    }

    /// The record of a model that may be on these devices, made now where there is none.
    pub(super) fn get(&self, id: &str, devices: &[usize]) -> Arc<ModelRecord> {
        if let Some(known) = self.records.read().unwrap_or_else(PoisonError::into_inner).get(id) {
            return Arc::clone(known);
        }
        let mut records = self.records.write().unwrap_or_else(PoisonError::into_inner);
        let new = || {
            let (queued, facts) = (PerClass::default(), Mutex::default());
            let metrics = ModelMetrics::new(id, devices, &self.device_names);
            Arc::new(ModelRecord { id: id.into(), metrics, queued, facts })
        };
        Arc::clone(records.entry(id.into()).or_insert_with(new))
    }

    /// The record of a model, where there is one.
    pub(super) fn find(&self, id: &str) -> Option<Arc<ModelRecord>> {
        self.records.read().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    /// Forgets the models for which `is_there` does not hold, where there are more records than these `models`.
    pub(super) fn retain(&self, models: usize, is_there: impl Fn(&str) -> bool) {
        if self.records.read().unwrap_or_else(PoisonError::into_inner).len() <= models {
            return;
        }
        self.records.write().unwrap_or_else(PoisonError::into_inner).retain(|id, _| is_there(id));
    }
}
