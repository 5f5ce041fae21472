//! A sequence in the queue.

use std::time::Instant;

use tokio::sync::mpsc::UnboundedSender;

use crate::engine::EngineError;
use crate::engine::admission::Share;
use crate::engine::meters::Meters;
use crate::engine::task::{Answer, Task};
use crate::engine::ticket::Reply;

/// An admitted sequence. It holds its share of the window, which goes back with it.
#[derive(Debug)]
pub(in crate::engine) struct Entry {
    task: Task,
    slot: usize,
    share: Share,
    admitted: Instant,
    deadline: Option<Instant>,
    reply: UnboundedSender<Reply>,
}

impl Entry {
    /// An entry that answers with `slot` and what came of the task to `reply`.
    pub(in crate::engine) fn new(
        task: Task,
        slot: usize,
        share: Share,
        deadline: Option<Instant>,
        reply: UnboundedSender<Reply>,
    ) -> Self {
        Self { task, slot, share, admitted: Instant::now(), deadline, reply }
    }

    pub(super) fn task(&self) -> &Task {
        &self.task
    }

    /// Its length.
    pub(in crate::engine) fn tokens(&self) -> usize {
        self.task.tokens()
    }

    /// Whether somebody still waits for the answer and it would come in time.
    pub(in crate::engine) fn is_wanted(&self, now: Instant) -> bool {
        !self.reply.is_closed() && !self.is_late(now)
    }

    fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Notes how long it waited for its forward pass.
    pub(super) fn note_wait(&self, now: Instant, meters: &Meters) {
        let waited = now.saturating_duration_since(self.admitted);
        meters.queue_seconds[self.share.class().index()].record(waited);
    }

    /// Gives the share back, then answers: who has the answer finds the room free.
    pub(in crate::engine) fn answer(self, answer: Result<Answer, EngineError>) {
        drop(self.share);
        // Nobody may be listening any more, which is their right.
        let _ = self.reply.send((self.slot, answer));
    }

    /// Ends an entry that is not wanted: it is late, or nobody is there to hear what it says.
    pub(in crate::engine) fn discard(self, now: Instant, meters: &Meters) {
        if self.is_late(now) {
            meters.dropped_late.increment(1);
        } else {
            meters.dropped_abandoned.increment(1);
        }
        self.answer(Err(EngineError::DeadlineExceeded));
    }
}
