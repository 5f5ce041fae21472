//! A pass in the queue.

use super::admission::{Permit, RequestContext};
use super::error::EngineError;
use super::metrics::EngineMetrics;
use super::request::{Answer, Pass, PassInput};
use std::sync::Arc;
use std::time::Instant;

/// Number of unanswered batches from which on a pass runs alone.
const UNANSWERED_ALONE: usize = 2;
/// Number of unanswered batches after which a pass fails.
const MOST_UNANSWERED: usize = 4;

/// An admitted pass. It holds its permit, which goes back with it.
#[derive(Debug)]
pub(super) struct QueuedPass {
    pass: Arc<Pass>,
    permit: Permit,
    admitted: Instant,
    /// Number of batches that had it and that a device did not answer.
    unanswered: usize,
}

impl QueuedPass {
    pub(super) fn new(pass: Arc<Pass>, permit: Permit) -> Self {
        Self { pass, permit, admitted: Instant::now(), unanswered: 0 }
    }

    pub(super) fn input(&self) -> &PassInput {
        &self.pass.input
    }

    pub(super) fn request(&self) -> &Arc<RequestContext> {
        &self.permit.request
    }

    pub(super) fn principal(&self) -> &Arc<str> {
        self.request().principal.shared_name()
    }

    pub(super) fn tokens(&self) -> usize {
        self.input().tokens()
    }

    /// Returns true if it may be why devices did not answer, so that the device has nothing else while it has this.
    pub(super) fn runs_alone(&self) -> bool {
        self.unanswered >= UNANSWERED_ALONE
    }

    /// Its length as a part of a batch, in which a pass that runs alone leaves no room.
    pub(super) fn batch_tokens(&self) -> usize {
        if self.runs_alone() { usize::MAX } else { self.tokens() }
    }

    /// Notes that a device did not answer; returns false if it is not to be tried again.
    pub(super) fn note_unanswered(&mut self) -> bool {
        self.unanswered += 1;
        self.unanswered < MOST_UNANSWERED
    }

    /// Returns true if somebody still waits for the answer and it would come in time.
    pub(super) fn is_wanted(&self, now: Instant) -> bool {
        self.request().is_wanted(now)
    }

    /// Notes that its forward pass begins, and how long it waited.
    pub(super) fn begin(&self, now: Instant, metrics: &EngineMetrics) {
        self.pass.begin(now);
        let waited = now.saturating_duration_since(self.admitted);
        metrics.queue_seconds.get(self.request().class).record(waited);
    }

    pub(super) fn answer(self, answer: Answer) {
        self.pass.settle(answer);
        self.reply(Ok(()));
    }

    pub(super) fn fail(self, error: EngineError) {
        self.reply(Err(error));
    }

    /// Ends a pass that is not wanted: it is late, or nobody waits for it.
    pub(super) fn discard(self, now: Instant, metrics: &EngineMetrics) {
        if self.request().is_late(now) {
            metrics.dropped_late.increment(1);
        } else {
            metrics.dropped_abandoned.increment(1);
        }
        self.fail(EngineError::DeadlineExceeded);
    }

    /// Gives the permit back, and then says so: whoever has the answer finds the room free.
    fn reply(self, outcome: Result<(), EngineError>) {
        let reply = self.request().reply.clone();
        drop(self);
        // Nobody may be listening any more, which is their right.
        let _ = reply.send(outcome);
    }
}
