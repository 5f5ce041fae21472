//! Eager models that failed are tried again, each after its pause, until the pool takes no more work.

use std::time::Instant;

use super::error::Ended;
use super::handle::Pool;

impl Pool {
    /// Begins every attempt when it is due, and ends with the pool.
    pub(super) async fn retry_failed(self) {
        let mut next = self.next_retry();
        while let Ok(due) = next {
            let changed = self.signal().wait_for(|| Some(self.next_retry()).filter(|next| *next != Ok(due)));
            next = match due {
                None => changed.await,
                Some(at) => match tokio::time::timeout_at(at.into(), changed).await {
                    Ok(changed) => changed,
                    Err(_) => self.retry_due(),
                },
            };
        }
    }

    /// Begins what is due, and says when the next attempt is.
    fn retry_due(&self) -> Result<Option<Instant>, Ended> {
        let fetches = self.change(|models| models.retry(Instant::now()));
        for (id, fetch) in fetches {
            self.spawn(&id, fetch);
        }
        self.next_retry()
    }

    /// When the next attempt is due; none while no eager model has failed.
    fn next_retry(&self) -> Result<Option<Instant>, Ended> {
        self.lock().next_retry()
    }
}
