//! A device that does not answer: the model runs elsewhere, and its server is gone, busy, or not the one it was. It pauses, what it
//! had taken goes back into the queue, where another device of the model may take it, and before it takes more it is asked whether
//! it answers again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::wanted;
use super::thread::Device;
use crate::engine::error::EngineError;
use crate::engine::queue::QueuedPass;

impl Device<'_> {
    /// Takes nothing for a while, unless it pauses already.
    pub(super) fn pause(&mut self, reason: &str, retry_after: Option<Duration>) {
        if self.seat.paused_until.is_some() {
            return;
        }
        let pause = self.circuit.fail(retry_after, chance());
        self.seat.paused_until = Some(Instant::now() + pause);
        tracing::warn!(device = self.name, reason, pause_seconds = pause.as_secs_f64(), "the device does not answer");
        self.shared.set_unavailable(self.seat.device, Some(reason));
    }

    /// Asks whether it answers again.
    pub(super) fn probe(&mut self) {
        self.seat.paused_until = None;
        match self.residents.models.values().find_map(|resident| resident.probe().err()) {
            None => {
                tracing::info!(device = self.name, "the device answers again");
                self.shared.set_unavailable(self.seat.device, None);
            }
            Some(failure) => self.pause(failure.reason(), failure.retry_after()),
        }
    }

    /// Puts passes back into the queue. `blame` is why the device did not answer where it had them: passes that this has happened to
    /// too often fail.
    pub(super) fn put_back(&self, model: &Arc<str>, passes: Vec<QueuedPass>, blame: Option<&String>) {
        let mut again = Vec::with_capacity(passes.len());
        for mut pass in wanted(passes, self.shared) {
            match blame {
                Some(reason) if !pass.note_unanswered() => {
                    pass.fail(EngineError::ModelFailed(format!("no device answered: {reason}")));
                }
                _ => again.push(pass),
            }
        }
        self.shared.put_back(model, again);
    }
}

/// A number from 0 to 1.
fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
