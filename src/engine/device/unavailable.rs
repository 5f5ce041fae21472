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
    /// Takes nothing for a while, unless it pauses already. If the server had a batch, its other connections pause as well: a
    /// server that fails would count against the sequences of each of them.
    pub(super) fn pause(&mut self, reason: &str, had_batch: bool, retry_after: Option<Duration>) {
        if self.seat.paused_until.is_none() {
            let now = Instant::now();
            let circuit = if had_batch { &*self.server } else { &self.circuit };
            let until = circuit.fail(now, reason, retry_after, chance());
            let pause_seconds = until.saturating_duration_since(now).as_secs_f64();
            tracing::warn!(device = self.name, reason, pause_seconds, "the device does not answer");
            self.pause_until(until, reason);
        }
    }

    /// Returns true if it takes nothing now: it pauses, or another connection to its server does since that failed.
    pub(super) fn is_paused(&mut self) -> bool {
        if self.seat.paused_until.is_none()
            && let Some(pause) = self.server.pause(Instant::now())
        {
            self.pause_until(pause.until, &pause.reason);
        }
        self.seat.paused_until.is_some()
    }

    fn pause_until(&mut self, until: Instant, reason: &str) {
        self.seat.paused_until = Some(until);
        self.shared.set_unavailable(self.seat.device, Some(reason));
    }

    /// Asks whether it answers again.
    pub(super) fn probe(&mut self) {
        self.seat.paused_until = None;
        if self.is_paused() {
            return;
        }
        match self.residents.models.values().find_map(|resident| resident.probe().err()) {
            None => {
                tracing::info!(device = self.name, "the device answers again");
                self.shared.set_unavailable(self.seat.device, None);
            }
            Some(failure) => self.pause(failure.reason(), false, failure.retry_after()),
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
