//! State of the engine that is known without asking it: facts that the device threads write as they happen.
//!
//! Health never goes through the queue, so a device that hangs or is lost shows as what it is, and a full queue
//! does not look like a fault.

use std::time::{Duration, Instant};

/// Maximum time without an answer of a device before that counts: it may be back at once.
pub(super) const MOST_SILENCE: Duration = Duration::from_secs(2);

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
    /// Maximum number of bytes of the models on it.
    pub memory_budget: u64,
    /// Bytes of the weights on it, and of what is tuned there, by the books.
    pub memory_used: u64,
    /// True if its thread runs.
    pub alive: bool,
    /// Why it is lost, where it is.
    pub lost: Option<String>,
    pub unavailable: Option<Unanswered>,
    /// Since when the forward pass in flight runs; none while the device is idle or loads a model.
    pub busy_since: Option<Instant>,
    /// When a pass through streamed layers last made progress.
    pub progressed: Option<Instant>,
}

/// The engine at a glance. Where each model stands is known to the [`Pool`](crate::pool::Pool).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EngineStatus {
    /// The models, in the order of their declarations.
    pub models: Vec<ModelActivity>,
    /// The devices, in the order of the configuration.
    pub devices: Vec<DeviceStatus>,
    /// Interactive tokens admitted and not yet answered.
    pub interactive_tokens: usize,
    /// Tokens of batch work admitted and not yet answered.
    pub batch_tokens: usize,
    /// When a forward pass last succeeded.
    pub last_ok: Option<Instant>,
    /// When a forward pass or a load last failed, and why.
    pub last_error: Option<(Instant, String)>,
    /// Why a device is lost, where one is: the first reason.
    pub device_lost: Option<String>,
    /// True if the engine has stopped admitting.
    pub draining: bool,
}

impl EngineStatus {
    /// Returns true if the threads of all devices run.
    pub fn device_alive(&self) -> bool {
        self.devices.iter().all(|device| device.alive)
    }

    /// Since when the oldest forward pass in flight runs; none while no device runs one.
    pub fn busy_since(&self) -> Option<Instant> {
        self.devices.iter().filter_map(|device| device.busy_since).min()
    }

    /// Since when the forward pass in flight without progress for longest has made none; none while no device runs one.
    pub fn busy_without_progress_since(&self) -> Option<Instant> {
        let since = |device: &DeviceStatus| Some(device.busy_since?.max(device.progressed?));
        self.devices.iter().filter_map(|device| since(device).or(device.busy_since)).min()
    }

    /// Returns the state of a device that has not answered for longer than `MOST_SILENCE`.
    pub(super) fn silence(&self, device: usize) -> Option<&Unanswered> {
        let unanswered = self.devices.get(device)?.unavailable.as_ref();
        unanswered.filter(|unanswered| unanswered.since.elapsed() > MOST_SILENCE)
    }
}
