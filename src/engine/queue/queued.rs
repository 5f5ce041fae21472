//! A pass in the queue.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;

use super::admission::Permit;
use crate::engine::class::Class;
use crate::engine::error::EngineError;
use crate::engine::metrics::EngineMetrics;
use crate::engine::request::{Answer, Pass, PassInput};
use crate::pool::Model;

/// Number of unanswered batches from which on a pass runs alone.
const UNANSWERED_ALONE: usize = 2;
/// Number of unanswered batches after which a pass fails.
const MOST_UNANSWERED: usize = 4;

/// An admitted pass. It holds its permit, which goes back with it.
#[derive(Debug)]
pub(in crate::engine) struct QueuedPass {
    pass: Arc<Pass>,
    /// The model that it runs through, with its adapter.
    model: Arc<Model>,
    /// The number of its request.
    request: u64,
    permit: Permit,
    admitted: Instant,
    deadline: Option<Instant>,
    reply: UnboundedSender<Result<(), EngineError>>,
    /// In how many batches it was that a device did not answer.
    unanswered: usize,
}

impl QueuedPass {
    /// Creates a pass of a request; `reply` is told when it is answered.
    pub(in crate::engine) fn new(
        pass: Arc<Pass>,
        model: Arc<Model>,
        request: u64,
        permit: Permit,
        deadline: Option<Instant>,
        reply: UnboundedSender<Result<(), EngineError>>,
    ) -> Self {
        Self { pass, model, request, permit, admitted: Instant::now(), deadline, reply, unanswered: 0 }
    }

    pub(in crate::engine) fn input(&self) -> &PassInput {
        self.pass.input()
    }

    /// The key of its statistics in the caches, beside the ids.
    pub(in crate::engine) fn cache_key(&self) -> &Arc<str> {
        self.pass.cache_key()
    }

    /// The name of who asks for it.
    pub(in crate::engine) fn caller(&self) -> &Arc<str> {
        self.permit.caller()
    }

    /// The model that it runs through, with its adapter.
    pub(in crate::engine) fn model(&self) -> &Arc<Model> {
        &self.model
    }

    /// The number of its request.
    pub(in crate::engine) fn request(&self) -> u64 {
        self.request
    }

    pub(in crate::engine) fn tokens(&self) -> usize {
        self.input().tokens()
    }

    pub(in crate::engine) fn class(&self) -> Class {
        self.permit.class()
    }

    /// Returns true if it may be why devices did not answer, so that the device has nothing else while it has this.
    pub(in crate::engine) fn runs_alone(&self) -> bool {
        self.unanswered >= UNANSWERED_ALONE
    }

    /// Its length as a part of a batch, in which what runs alone leaves no room.
    pub(in crate::engine) fn batch_tokens(&self) -> usize {
        if self.runs_alone() { usize::MAX } else { self.tokens() }
    }

    /// Notes that a device did not answer; whether it may be tried again.
    pub(in crate::engine) fn note_unanswered(&mut self) -> bool {
        self.unanswered += 1;
        self.unanswered < MOST_UNANSWERED
    }

    /// Returns true if somebody still waits for the answer and it would come in time.
    pub(in crate::engine) fn is_wanted(&self, now: Instant) -> bool {
        !self.reply.is_closed() && !self.is_late(now)
    }

    fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Notes that its forward pass begins, and how long it waited.
    pub(in crate::engine) fn begin(&self, now: Instant, metrics: &EngineMetrics) {
        self.pass.begin(now);
        let waited = now.saturating_duration_since(self.admitted);
        metrics.queue_seconds.get(self.permit.class()).record(waited);
    }

    /// Writes the answer, gives the permit back, and then says so: who has the answer finds the room free.
    pub(in crate::engine) fn answer(self, answer: Answer) {
        self.pass.settle(answer);
        self.reply(Ok(()));
    }

    /// As [`QueuedPass::answer`], where there is none.
    pub(in crate::engine) fn fail(self, error: EngineError) {
        self.reply(Err(error));
    }

    /// Ends a pass that is not wanted: it is late, or nobody is there to hear what it says.
    pub(in crate::engine) fn discard(self, now: Instant, metrics: &EngineMetrics) {
        if self.is_late(now) {
            metrics.dropped_late.increment(1);
        } else {
            metrics.dropped_abandoned.increment(1);
        }
        self.fail(EngineError::DeadlineExceeded);
    }

    fn reply(self, outcome: Result<(), EngineError>) {
        drop(self.permit);
        // Nobody may be listening any more, which is their right.
        let _ = self.reply.send(outcome);
    }
}
