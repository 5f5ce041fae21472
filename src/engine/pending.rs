//! A request between its admission and its answer. Dropping it is how a request is cancelled: what of it is still in the
//! queue is taken out, and its room is free.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout_at;

use super::error::EngineError;
use super::metrics::{RequestGuard, RequestOutcome};
use super::request::{Pass, Request};
use super::shared::Shared;

/// Passes of an answered request, and their cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answered {
    /// The distinct passes of the request, each with its answer.
    pub passes: Vec<Arc<Pass>>,
    /// Number of passes run through the model.
    pub forward_passes: usize,
    /// Number of passes answered from the cache, in memory or on disk.
    pub cached_passes: usize,
    /// Time when the first of them began to run; `None` if none had to.
    pub begun: Option<Instant>,
}

/// An admitted request. Dropping it cancels what has not run yet.
#[must_use = "dropping a pending request cancels it"]
#[derive(Debug)]
pub struct PendingRequest {
    request: Request,
    /// The number by which its passes are found in the queue.
    number: u64,
    outstanding: usize,
    forward_passes: usize,
    cached_passes: usize,
    failure: Option<EngineError>,
    replies: UnboundedReceiver<Result<(), EngineError>>,
    shared: Arc<Shared>,
    guard: Option<RequestGuard>,
}

impl PendingRequest {
    /// Creates a request with `forward_passes` passes to run and `cached_passes` answered by the cache, and the place where their
    /// answers are announced. The pending request holds no sender: when all queued passes are gone and answers are missing, it
    /// knows that none will come.
    pub(super) fn new(
        request: Request,
        forward_passes: usize,
        cached_passes: usize,
        shared: Arc<Shared>,
        guard: RequestGuard,
    ) -> (Self, UnboundedSender<Result<(), EngineError>>) {
        let (sender, replies) = unbounded_channel();
        let pending = Self {
            number: shared.number_request(),
            request,
            outstanding: forward_passes,
            forward_passes,
            cached_passes,
            failure: None,
            replies,
            shared,
            guard: Some(guard),
        };
        (pending, sender)
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Waits for the answers, but not beyond the request's deadline.
    ///
    /// # Errors
    /// The first error of any of its passes: a request succeeds whole or fails whole.
    pub async fn wait(mut self) -> Result<Answered, EngineError> {
        while self.outstanding > 0 && self.failure.is_none() {
            match before(self.request.deadline, self.replies.recv()).await {
                Some(Some(reply)) => self.take(reply),
                Some(None) => self.failure = Some(self.shared.why_it_ended()),
                None => self.failure = Some(EngineError::DeadlineExceeded),
            }
        }
        let outcome = self.failure.as_ref().map_or(RequestOutcome::Ok, RequestOutcome::from);
        if let Some(guard) = self.guard.take() {
            guard.settle(outcome);
        }
        match self.failure.take() {
            Some(error) => Err(error),
            None => Ok(Answered {
                begun: self.request.passes.iter().filter_map(|pass| pass.begun()).min(),
                passes: std::mem::take(&mut self.request.passes),
                forward_passes: self.forward_passes,
                cached_passes: self.cached_passes,
            }),
        }
    }

    /// Takes in what has come so far; whether the request has failed, so that feeding more of it is of no use.
    pub(super) fn has_failed(&mut self) -> bool {
        while let Ok(reply) = self.replies.try_recv() {
            self.take(reply);
        }
        self.failure.is_some()
    }

    pub(super) fn fail(&mut self, error: EngineError) {
        self.failure.get_or_insert(error);
    }

    fn take(&mut self, reply: Result<(), EngineError>) {
        match reply {
            Ok(()) => self.outstanding = self.outstanding.saturating_sub(1),
            Err(error) => self.fail(error),
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        if self.outstanding > 0 {
            // Closed first: what a device takes up meanwhile is not wanted any more.
            self.replies.close();
            self.shared.cancel(self.request.class, &self.request.model, self.number);
        }
    }
}

/// Waits for the future, but not beyond the deadline; returns `None` if the deadline comes first.
pub(super) async fn before<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}
