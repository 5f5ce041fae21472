//! A request between its admission and its answer. Dropping it is how a request is cancelled: its sequences find the
//! channel closed and are dropped before their forward pass.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout_at;

use super::meters::{Outcome, RequestGuard};
use super::plan::{Pending, Plan};
use super::task::Answer;
use super::{EngineError, Shared, Stats};
use crate::models::masked::Filled;

/// One task's answer, with its index in the plan.
pub(super) type Reply = (usize, Result<Answer, EngineError>);

/// The answer to a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Output {
    /// Statistics per sequence, in the order of [`Work::sequences`](super::Work::sequences).
    pub stats: Vec<Stats>,
    /// What fills each blank, in the order of [`FillWork::blanks`](super::FillWork::blanks).
    pub filled: Vec<Filled>,
    /// How many distinct sequences were run through the model.
    pub forward_passes: usize,
    /// How many distinct sequences were answered from the cache, in memory or on disk.
    pub cached_passes: usize,
}

/// An admitted request. Dropping it cancels what has not run yet.
#[must_use = "dropping a ticket cancels the request"]
#[derive(Debug)]
pub struct Ticket {
    slots: Vec<usize>,
    answers: Vec<Answer>,
    outstanding: usize,
    forward_passes: usize,
    cached_passes: usize,
    deadline: Option<Instant>,
    failure: Option<EngineError>,
    replies: UnboundedReceiver<Reply>,
    shared: Arc<Shared>,
    guard: RequestGuard,
}

impl Ticket {
    /// A ticket for the plan, what is to run, and where the answers go. The ticket holds no sender: when all
    /// entries are gone and answers are missing, it knows that none will come.
    pub(super) fn new(
        plan: Plan,
        deadline: Option<Instant>,
        shared: Arc<Shared>,
        guard: RequestGuard,
    ) -> (Self, Pending, UnboundedSender<Reply>) {
        let (sender, replies) = unbounded_channel();
        let ticket = Self {
            slots: plan.slots,
            answers: plan.answers,
            outstanding: plan.pending.len(),
            forward_passes: plan.pending.len(),
            cached_passes: plan.cached + plan.recalled,
            deadline,
            failure: None,
            replies,
            shared,
            guard,
        };
        (ticket, plan.pending, sender)
    }

    /// Waits for the answers, but not beyond the request's deadline.
    ///
    /// # Errors
    /// The first error of any of its sequences: a request succeeds whole or fails whole.
    pub async fn wait(mut self) -> Result<Output, EngineError> {
        while self.outstanding > 0 && self.failure.is_none() {
            match before(self.deadline, self.replies.recv()).await {
                Some(Some(reply)) => self.take(reply),
                Some(None) => self.failure = Some(self.shared.why_it_ended()),
                None => self.failure = Some(EngineError::DeadlineExceeded),
            }
        }
        match self.failure {
            Some(error) => {
                self.guard.settle(Outcome::from(&error));
                Err(error)
            }
            None => {
                self.guard.settle(Outcome::Ok);
                let (forward_passes, cached_passes) = (self.forward_passes, self.cached_passes);
                let mut output = Output { forward_passes, cached_passes, ..Output::default() };
                for &slot in &self.slots {
                    match &self.answers[slot] {
                        Answer::Stats(stats) => output.stats.push(Arc::clone(stats)),
                        Answer::Filled(filled) => output.filled.push(filled.clone()),
                    }
                }
                Ok(output)
            }
        }
    }

    /// Takes in what has come so far; whether the request has failed, so that feeding more of it is of no use.
    pub(super) fn has_failed(&mut self) -> bool {
        while let Ok(reply) = self.replies.try_recv() {
            self.take(reply);
        }
        self.failure.is_some()
    }

    /// Marks the request as failed.
    pub(super) fn fail(&mut self, error: EngineError) {
        self.failure.get_or_insert(error);
    }

    fn take(&mut self, (slot, answer): Reply) {
        match answer {
            Ok(answer) => {
                self.answers[slot] = answer;
                self.outstanding = self.outstanding.saturating_sub(1);
            }
            Err(error) => self.fail(error),
        }
    }
}

/// Waits for the future, but not beyond the deadline: none where the deadline comes first.
pub(super) async fn before<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}
