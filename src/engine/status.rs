//! What is known of the engine without asking it: facts that the device thread writes as they happen.
//!
//! Health never goes through the queue, so a device that hangs or is lost shows as what it is, and a full queue
//! does not look like a fault.

use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::admission::Rate;

/// Where a model stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelState {
    /// Not in memory; the first request loads it.
    Unloaded,
    /// Being loaded, or waiting for its turn at start.
    Loading,
    /// In memory.
    Ready,
    /// The last attempt to load it failed, for this reason; a later request tries again.
    Failed(String),
}

/// One model's part of [`EngineStatus`].
#[derive(Debug, Clone, PartialEq)]
pub struct ModelStatus {
    /// Its id.
    pub id: String,
    /// Whether it is loaded at start and readiness waits for it.
    pub eager: bool,
    /// Where it stands.
    pub state: ModelState,
    /// Its speed as last measured; none where it was not measured lately.
    pub tokens_per_second: Option<f64>,
}

/// The engine at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineStatus {
    /// The models, in the order of the configuration.
    pub models: Vec<ModelStatus>,
    /// Interactive tokens admitted and not yet answered.
    pub interactive_tokens: usize,
    /// Tokens of batch work admitted and not yet answered.
    pub batch_tokens: usize,
    /// When a forward pass last succeeded.
    pub last_ok: Option<Instant>,
    /// When a forward pass or a load last failed, and why.
    pub last_error: Option<(Instant, String)>,
    /// Since when the forward pass in flight runs; none while the device is idle or loads a model.
    pub busy_since: Option<Instant>,
    /// Whether the device thread runs.
    pub device_alive: bool,
    /// Why the device is lost, where it is.
    pub device_lost: Option<String>,
    /// Whether the engine has stopped admitting.
    pub draining: bool,
}

/// What the device thread knows of one model.
#[derive(Debug)]
pub(super) struct ModelFacts {
    pub(super) eager: bool,
    pub(super) state: ModelState,
    /// While the state is failed: when loading may be tried again.
    retry_at: Option<Instant>,
    pub(super) rate: Option<Rate>,
}

impl ModelFacts {
    /// Why loading is not to be tried at `now`: it failed a moment ago.
    pub(super) fn refusal(&self, now: Instant) -> Option<&str> {
        match (&self.state, self.retry_at) {
            (ModelState::Failed(reason), Some(retry_at)) if now < retry_at => Some(reason),
            _ => None,
        }
    }

    /// Notes that loading failed at `now`, after `took`.
    pub(super) fn fail(&mut self, reason: String, now: Instant, took: Duration) {
        self.state = ModelState::Failed(reason);
        self.retry_at = now.checked_add(took);
    }
}

/// What the device thread knows.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) models: Vec<ModelFacts>,
    pub(super) last_ok: Option<Instant>,
    pub(super) last_error: Option<(Instant, String)>,
    pub(super) busy_since: Option<Instant>,
    pub(super) alive: bool,
    pub(super) lost: Option<String>,
}

impl Facts {
    /// The facts before the device thread has done anything. `eager` says of each model whether it is loaded at
    /// start.
    pub(super) fn new(eager: impl Iterator<Item = bool>) -> Self {
        let models = eager.map(|eager| ModelFacts {
            eager,
            state: if eager { ModelState::Loading } else { ModelState::Unloaded },
            retry_at: None,
            rate: None,
        });
        Self { models: models.collect(), last_ok: None, last_error: None, busy_since: None, alive: true, lost: None }
    }

    /// Whether every eager model is ready.
    pub(super) fn loaded(&self) -> bool {
        let mut eager = self.models.iter().filter(|model| model.eager);
        eager.all(|model| model.state == ModelState::Ready)
    }

    /// The first eager model that failed, by index, and why.
    pub(super) fn failed(&self) -> Option<(usize, &str)> {
        let mut models = self.models.iter().enumerate();
        models.find_map(|(index, model)| match &model.state {
            ModelState::Failed(reason) if model.eager => Some((index, reason.as_str())),
            _ => None,
        })
    }
}

/// Where the device thread writes its facts and everybody reads them.
#[derive(Debug)]
pub(super) struct Board(watch::Sender<Facts>);

impl Board {
    pub(super) fn new(facts: Facts) -> Self {
        Self(watch::Sender::new(facts))
    }

    /// Reads the facts. The device thread waits for readers, so hold the result briefly.
    pub(super) fn read(&self) -> watch::Ref<'_, Facts> {
        self.0.borrow()
    }

    /// Changes a fact that nobody waits for.
    pub(super) fn note<R>(&self, change: impl FnOnce(&mut Facts) -> R) {
        self.0.send_if_modified(|facts| {
            change(facts);
            false
        });
    }

    /// Changes a fact and wakes whoever waits for one.
    pub(super) fn announce<R>(&self, change: impl FnOnce(&mut Facts) -> R) {
        self.0.send_modify(|facts| {
            change(facts);
        });
    }

    /// Waits until the facts answer the question.
    pub(super) async fn wait_for<R>(&self, mut answer: impl FnMut(&Facts) -> Option<R>) -> R {
        let mut reader = self.0.subscribe();
        loop {
            if let Some(answer) = answer(&reader.borrow_and_update()) {
                return answer;
            }
            // The writer is `self`, which outlives this; were it gone, there would be nothing left to wait for.
            if reader.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
