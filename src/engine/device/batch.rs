//! Execution of a batch: begun, left to the device while the next one is prepared, and finished; in as many parts as its failures
//! ask for.
//!
//! A device that does not answer pauses: the model runs elsewhere, and its server is gone, busy, or not the one it was. The
//! passes that it had taken go back into the queue, where another device of the model may take them, and before it takes more
//! it is asked whether it answers again.

use super::resident::{ResidentModel, finish};
use super::thread::{Device, InFlightBatch};
use crate::engine::error::{EngineError, Failure};
use crate::engine::queue::halve;
use crate::engine::queued::QueuedPass;
use crate::engine::request::Answer;
use crate::engine::shared::Shared;
use crate::pool::base_id;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Device<'_> {
    /// Begins a batch, and finishes the one before it meanwhile. Where the device has the answers at once, the batch is
    /// finished as well.
    pub(super) fn serve(&mut self, model: &Arc<str>, batch: Vec<QueuedPass>) -> ControlFlow<()> {
        let started = Instant::now();
        for pass in &batch {
            pass.begin(started, &self.shared.metrics);
        }
        self.serve_parts(model, vec![batch])
    }

    /// Runs the parts of a batch, the last one first.
    fn serve_parts(&mut self, model: &Arc<str>, mut parts: Vec<Vec<QueuedPass>>) -> ControlFlow<()> {
        while let Some(part) = parts.pop() {
            let passes = wanted(part, self.shared);
            if passes.is_empty() {
                continue;
            }
            if self.is_paused() {
                self.put_back(model, passes, None);
                continue;
            }
            let since = Instant::now();
            self.shared.facts().devices[self.seat.device].busy_since.get_or_insert(since);
            let begun = self.resident(model).and_then(|resident| resident.begin(&passes));
            match begun {
                Ok(answers) => {
                    let batch = InFlightBatch { model: Arc::clone(model), passes, answers, since };
                    if let Some(before) = self.in_flight.replace(batch) {
                        self.finish(before)?;
                    }
                    if let Some(done) = self.in_flight.take_if(|batch| batch.answers.is_ready()) {
                        self.finish(done)?;
                    }
                }
                Err(failure) => parts.extend(self.end(model, passes, Err(failure), since)?),
            }
        }
        ControlFlow::Continue(())
    }

    /// Waits for the answers of a batch and hands them out. What failed is run again in parts.
    pub(super) fn finish(&mut self, batch: InFlightBatch) -> ControlFlow<()> {
        let InFlightBatch { model, passes, answers, since } = batch;
        let result = finish(answers);
        let parts = self.end(&model, passes, result, since)?;
        self.serve_parts(&model, parts)
    }

    /// Notes how a forward pass ended and tells those who wait for it. Gives the parts in which it is to be run again now: a
    /// smaller one may fit, and another client's sequence may be what fails.
    fn end(
        &mut self,
        model: &Arc<str>,
        passes: Vec<QueuedPass>,
        result: Result<Vec<Answer>, Failure>,
        since: Instant,
    ) -> ControlFlow<(), Vec<Vec<QueuedPass>>> {
        self.note(model, &passes, &result, since);
        match result {
            Ok(answers) => answer(passes, answers, self.shared),
            Err(Failure::DeviceLost(reason)) => {
                self.shared.lose_device(self.seat.device, &reason);
                return ControlFlow::Break(());
            }
            Err(Failure::Unavailable { reason, had_batch, retry_after }) => {
                self.pause(&reason, had_batch, retry_after);
                self.put_back(model, passes, had_batch.then_some(&reason));
            }
            // No sequence caused it, so no part of the batch would fare better.
            Err(Failure::Unreadable(reason)) => {
                for pass in passes {
                    pass.fail(EngineError::LoadFailed(reason.clone()));
                }
            }
            // Those that are wanted are cancelled by the end of the engine alone, which says so itself.
            Err(Failure::Cancelled(_)) => drop(wanted(passes, self.shared)),
            Err(failure) if passes.len() > 1 => {
                if let (Failure::OutOfMemory(_), Ok(resident)) = (&failure, self.resident(model)) {
                    resident.record.metrics.halvings.increment(1);
                }
                let (first, second) = halve(passes, QueuedPass::tokens);
                return ControlFlow::Continue(vec![second, first]);
            }
            Err(failure) => {
                for pass in passes {
                    pass.fail(EngineError::ModelFailed(failure.reason().to_owned()));
                }
            }
        }
        ControlFlow::Continue(Vec::new())
    }

    fn note(&mut self, model: &str, passes: &[QueuedPass], result: &Result<Vec<Answer>, Failure>, since: Instant) {
        let (now, device) = (Instant::now(), self.seat.device);
        if let Ok(resident) = self.resident(model) {
            resident.note(passes, result, now, now.saturating_duration_since(since));
            resident.show_budget(device);
        }
        // The device comes to the next one now.
        if let Some(next) = &mut self.in_flight {
            next.since = now;
        }
        let mut facts = self.shared.facts();
        facts.devices[device].busy_since = self.in_flight.as_ref().map(|next| next.since);
        match result {
            Ok(_) => {
                self.circuit.close();
                self.slot.server.close();
                facts.last_ok = Some(now);
            }
            Err(failure) => facts.last_error = Some((now, failure.reason().to_owned())),
        }
    }

    fn resident(&mut self, model: &str) -> Result<&mut ResidentModel, Failure> {
        self.residents.models.get_mut(base_id(model)).ok_or_else(|| {
            tracing::error!(model, "internal error: a batch came for a model that the device does not hold");
            Failure::Failed("internal error: the device does not hold it".to_owned())
        })
    }

    /// Takes nothing for a while, unless it pauses already. If the server had a batch, its other connections pause as well: a
    /// server that fails would count against the sequences of each of them.
    fn pause(&mut self, reason: &str, had_batch: bool, retry_after: Option<Duration>) {
        if self.seat.paused_until.is_none() {
            let now = Instant::now();
            let circuit = if had_batch { &*self.slot.server } else { &self.circuit };
            let until = circuit.fail(now, reason, retry_after, chance());
            let pause_seconds = until.saturating_duration_since(now).as_secs_f64();
            tracing::warn!(device = self.slot.name, reason, pause_seconds, "the device does not answer");
            self.pause_until(until, reason);
        }
    }

    /// Returns true if it takes nothing now: it pauses, or another connection to its server does since that failed.
    fn is_paused(&mut self) -> bool {
        if self.seat.paused_until.is_none()
            && let Some(pause) = self.slot.server.pause(Instant::now())
        {
            self.pause_until(pause.until, &pause.reason);
        }
        self.seat.paused_until.is_some()
    }

    fn pause_until(&mut self, until: Instant, reason: &str) {
        self.seat.paused_until = Some(until);
        self.shared.set_unavailable(self.seat.device, Some(reason));
    }

    pub(super) fn probe(&mut self) {
        self.seat.paused_until = None;
        if self.is_paused() {
            return;
        }
        match self.residents.models.values().find_map(|resident| resident.probe().err()) {
            None => {
                tracing::info!(device = self.slot.name, "the device answers again");
                self.shared.set_unavailable(self.seat.device, None);
            }
            Some(failure) => self.pause(failure.reason(), false, failure.retry_after()),
        }
    }

    /// Puts passes back into the queue. `blame` is why the device did not answer where it had them: passes that this has happened to
    /// too often fail.
    fn put_back(&self, model: &Arc<str>, passes: Vec<QueuedPass>, blame: Option<&String>) {
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

/// The passes that somebody still waits for; the others end here.
fn wanted(part: Vec<QueuedPass>, shared: &Shared) -> Vec<QueuedPass> {
    let now = Instant::now();
    let (wanted, unwanted): (Vec<_>, Vec<_>) = part.into_iter().partition(|pass| pass.is_wanted(now));
    for pass in unwanted {
        pass.discard(now, &shared.metrics);
    }
    wanted
}

fn answer(passes: Vec<QueuedPass>, answers: Vec<Answer>, shared: &Shared) {
    for (pass, answer) in passes.into_iter().zip(answers) {
        if let (Some(ids), Answer::Stats(stats)) = (pass.input().sequence(), &answer) {
            shared.cache.insert(&pass.request().cache_key, ids, stats);
        }
        pass.answer(answer);
    }
    shared.metrics.cache_bytes.set(shared.cache.bytes() as f64);
}

fn chance() -> f64 {
    RandomState::new().build_hasher().finish() as f64 / u64::MAX as f64
}
