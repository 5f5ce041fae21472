//! What is ended by itself: jobs whose time is over. What is deleted by itself: jobs past their retention, the oldest where memory
//! is all there is, and what was never completed.

use super::failure::JobFailure;
use super::kind::JobKind;
use super::runner::{Jobs, POLL};
use crate::store::StoreError;
use std::time::Duration;

/// Jobs of a kind that have ended and are kept in memory; the oldest makes room.
const MAX_FINISHED: usize = 256;
/// How long an upload may stand still.
const IDLE: Duration = Duration::from_secs(3_600);
/// The longest pause between two looks at what may be deleted.
const LONGEST_PAUSE: Duration = Duration::from_secs(600);

impl<K: JobKind> Jobs<K> {
    /// Deletes what is not to be kept, until the service ends.
    pub(super) async fn keep_up(self) {
        let closing = self.closing().clone();
        let mut changes = self.changes();
        let keeping = async {
            loop {
                if let Err(error) = self.delete_old().await {
                    tracing::warn!(%error, "the store cannot be tidied now");
                }
                let pause = self.settings().retention.map_or(LONGEST_PAUSE, |age| LONGEST_PAUSE.min(age / 4));
                if self.store().is_durable() {
                    tokio::time::sleep(pause).await;
                } else {
                    // The number of jobs in memory changes with every one that ends.
                    let _ = tokio::time::timeout(pause, changes.changed()).await;
                }
            }
        };
        closing.run_until_cancelled(keeping).await;
    }

    /// Ends jobs that nobody runs when their time is over, until the service ends; whoever runs one ends it itself.
    pub(super) async fn watch_deadlines(self) {
        let closing = self.closing().clone();
        let failure = JobFailure::overdue();
        let watching = async {
            loop {
                tokio::time::sleep(POLL).await;
                match self.store().end_overdue(K::NAME, &failure.json()).await {
                    Ok(ended) => {
                        for id in ended {
                            tracing::error!(job = %id, error = failure.message, "{} failed", K::NAME);
                            Self::count("failed");
                            self.changed();
                        }
                    }
                    // It is tried again in a moment, and the other tasks say that the store does not answer.
                    Err(error) => tracing::debug!(%error, "deadlines cannot be looked at now"),
                }
            }
        };
        closing.run_until_cancelled(watching).await;
    }

    async fn delete_old(&self) -> Result<(), StoreError> {
        let store = self.store();
        store.drop_abandoned(IDLE).await?;
        store.drop_unretained().await?;
        if let Some(age) = self.settings().retention {
            let deleted = store.delete_ended_before(age).await?;
            if deleted > 0 {
                tracing::info!(deleted, "jobs past their retention are deleted");
            }
        }
        if store.is_durable() {
            return Ok(());
        }
        let ended = store.ended_jobs(K::NAME).await?;
        let (mut count, mut total) = (ended.len(), ended.iter().map(|(_, weight)| weight).sum::<usize>());
        for (id, weight) in ended {
            if count <= MAX_FINISHED && total <= K::MOST_KEPT {
                break;
            }
            store.delete_job(id).await?;
            count -= 1;
            total -= weight;
        }
        Ok(())
    }
}
