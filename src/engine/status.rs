//! State of the engine that is known without asking it: facts that the device threads write as they happen.
//!
//! Health never goes through the queue, so a device that hangs or is lost shows as what it is, and a full queue
//! does not look like a fault.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, PartialEq)]
pub struct ModelActivity {
    pub id: String,
    /// When a load or a forward pass of it last ended.
    pub last_used: Option<Instant>,
    /// Its speed on one device as last measured; `None` if it was not measured lately.
    pub tokens_per_second: Option<f64>,
}

/// A device that does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unanswered {
    /// When it did not answer for the first time since it last did.
    pub since: Instant,
    /// Why it did not, the last time.
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct DeviceStatus {
    pub name: String,
    pub memory_budget: u64,
    /// Bytes of the weights on it, and of what is tuned there, by the books.
    pub memory_used: u64,
    pub alive: bool,
    pub lost: Option<String>,
    pub unavailable: Option<Unanswered>,
    /// Since when the forward pass in flight runs; none while the device is idle or loads a model.
    pub busy_since: Option<Instant>,
}

/// The engine at a glance. Where each model stands is known to the [`Pool`](crate::pool::Pool).
#[derive(Debug, Clone, PartialEq)]
pub struct EngineStatus {
    pub models: Vec<ModelActivity>,
    /// The devices, in the order of the configuration.
    pub devices: Vec<DeviceStatus>,
    pub interactive_tokens: usize,
    pub batch_tokens: usize,
    /// When a forward pass last succeeded.
    pub last_ok: Option<Instant>,
    /// When a forward pass or a load last failed, and why.
    pub last_error: Option<(Instant, String)>,
    /// Since when the oldest forward pass in flight runs; none while no device runs one.
    pub busy_since: Option<Instant>,
    /// True if the threads of all devices run.
    pub device_alive: bool,
    /// Why a device is lost, where one is: the first reason.
    pub device_lost: Option<String>,
    pub draining: bool,
}

#[derive(Debug)]
pub(super) struct DeviceState {
    pub(super) alive: bool,
    pub(super) lost: Option<String>,
    pub(super) unavailable: Option<Unanswered>,
    pub(super) busy_since: Option<Instant>,
}

/// Maximum time without an answer of a device before that counts: it may be back at once.
pub(super) const MOST_SILENCE: Duration = Duration::from_secs(2);

/// Facts that the device threads know.
#[derive(Debug)]
pub(super) struct Facts {
    pub(super) devices: Vec<DeviceState>,
    pub(super) last_ok: Option<Instant>,
    pub(super) last_error: Option<(Instant, String)>,
    /// The first loss of a device.
    pub(super) lost: Option<String>,
}

impl Facts {
    pub(super) fn new(devices: usize) -> Self {
        let device = |_| DeviceState { alive: true, lost: None, unavailable: None, busy_since: None };
        Self { devices: (0..devices).map(device).collect(), last_ok: None, last_error: None, lost: None }
    }

    /// Returns true if all device threads run.
    pub(super) fn alive(&self) -> bool {
        self.devices.iter().all(|device| device.alive)
    }

    /// Returns the state of a device that has not answered for longer than `MOST_SILENCE`.
    pub(super) fn silence(&self, device: usize) -> Option<&Unanswered> {
        let unanswered = self.devices.get(device)?.unavailable.as_ref();
        unanswered.filter(|unanswered| unanswered.since.elapsed() > MOST_SILENCE)
    }
}
