//! What is known of the engine without asking it: facts that the device threads write as they happen.
//!
//! Health never goes through the queue, so a device that hangs or is lost shows as what it is, and a full queue
//! does not look like a fault.

use std::time::Instant;

use tokio::sync::watch;

use super::admission::Rate;

/// Where a model stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelState {
    /// Not in memory; the first request loads it.
    Unloaded,
    /// Being opened or loaded, or waiting for its turn.
    Loading,
    /// In memory of at least one device.
    Ready,
    /// Being unloaded: what is queued for it is finished, new requests are refused.
    Draining,
    /// The last attempt to open or load it failed, for this reason; a later request tries again.
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
    /// The devices that hold it, as indexes into [`EngineStatus::devices`].
    pub resident: Vec<usize>,
    /// When it was last loaded; none where it is not in memory.
    pub loaded_at: Option<Instant>,
    /// When a load or a forward pass of it last ended.
    pub last_used: Option<Instant>,
    /// Its speed on one device as last measured; none where it was not measured lately.
    pub tokens_per_second: Option<f64>,
}

/// One device's part of [`EngineStatus`].
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceStatus {
    /// Its name.
    pub name: String,
    /// How many bytes the models on it may take.
    pub memory_budget: u64,
    /// Bytes of the weights on it, by the books.
    pub memory_used: u64,
    /// Whether its thread runs.
    pub alive: bool,
    /// Why it is lost, where it is.
    pub lost: Option<String>,
    /// Since when the forward pass in flight runs; none while the device is idle or loads a model.
    pub busy_since: Option<Instant>,
}

/// The engine at a glance.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineStatus {
    /// The models, in the order of the configuration.
    pub models: Vec<ModelStatus>,
    /// The devices, in the order of the configuration.
    pub devices: Vec<DeviceStatus>,
    /// Interactive tokens admitted and not yet answered.
    pub interactive_tokens: usize,
    /// Tokens of batch work admitted and not yet answered.
    pub batch_tokens: usize,
    /// When a forward pass last succeeded.
    pub last_ok: Option<Instant>,
    /// When a forward pass, an opening or a load last failed, and why.
    pub last_error: Option<(Instant, String)>,
    /// Since when the oldest forward pass in flight runs; none while no device runs one.
    pub busy_since: Option<Instant>,
    /// Whether the threads of all devices run.
    pub device_alive: bool,
    /// Why a device is lost, where one is: the first reason.
    pub device_lost: Option<String>,
    /// Whether the engine has stopped admitting.
    pub draining: bool,
}

/// What is known of one model.
#[derive(Debug)]
pub(super) struct ModelFacts {
    pub(super) eager: bool,
    pub(super) state: ModelState,
    pub(super) resident: Vec<usize>,
    pub(super) loaded_at: Option<Instant>,
    pub(super) last_used: Option<Instant>,
    pub(super) rate: Option<Rate>,
}

/// What is known of one device.
#[derive(Debug)]
pub(super) struct DeviceFacts {
    pub(super) memory_used: u64,
    pub(super) alive: bool,
    pub(super) lost: Option<String>,
    pub(super) busy_since: Option<Instant>,
}

/// What the device threads know.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) models: Vec<ModelFacts>,
    pub(super) devices: Vec<DeviceFacts>,
    pub(super) last_ok: Option<Instant>,
    pub(super) last_error: Option<(Instant, String)>,
    /// The first loss of a device.
    pub(super) lost: Option<String>,
}

impl Facts {
    /// The facts before any device thread has done anything. `eager` says of each model whether it is loaded at start.
    pub(super) fn new(eager: impl Iterator<Item = bool>, devices: usize) -> Self {
        let models = eager.map(|eager| ModelFacts {
            eager,
            state: if eager { ModelState::Loading } else { ModelState::Unloaded },
            resident: Vec::new(),
            loaded_at: None,
            last_used: None,
            rate: None,
        });
        let device = |_| DeviceFacts { memory_used: 0, alive: true, lost: None, busy_since: None };
        let devices = (0..devices).map(device).collect();
        Self { models: models.collect(), devices, last_ok: None, last_error: None, lost: None }
    }

    /// Whether every eager model is ready or was unloaded by hand.
    pub(super) fn loaded(&self) -> bool {
        let mut eager = self.models.iter().filter(|model| model.eager);
        eager.all(|model| !matches!(model.state, ModelState::Loading | ModelState::Failed(_)))
    }

    /// The first eager model that failed, by index, and why.
    pub(super) fn failed(&self) -> Option<(usize, &str)> {
        let mut models = self.models.iter().enumerate();
        models.find_map(|(index, model)| match &model.state {
            ModelState::Failed(reason) if model.eager => Some((index, reason.as_str())),
            _ => None,
        })
    }

    /// Whether all device threads run.
    pub(super) fn alive(&self) -> bool {
        self.devices.iter().all(|device| device.alive)
    }
}

/// Where the device threads write their facts and everybody reads them.
#[derive(Debug)]
pub(super) struct Board(watch::Sender<Facts>);

impl Board {
    pub(super) fn new(facts: Facts) -> Self {
        Self(watch::Sender::new(facts))
    }

    /// Reads the facts. The device threads wait for readers, so hold the result briefly.
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

    /// Changes what has changed, if anything, as `change` says, and wakes whoever waits for it.
    pub(super) fn bring_up_to_date(&self, change: impl FnOnce(&mut Facts) -> bool) {
        self.0.send_if_modified(change);
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
