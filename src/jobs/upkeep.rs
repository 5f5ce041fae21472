//! Background upkeep: ends jobs past their deadline, and deletes jobs past their retention, the oldest jobs in an in-memory
//! store, and whatever was never completed.

use super::error::JobFailure;
use super::kind::JobKind;
use super::runner::{Jobs, POLL};
use crate::store::StoreError;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use uuid::Uuid;

/// Jobs of a kind that have ended and are kept in memory; the oldest makes room.
const MAX_FINISHED: usize = 256;
/// Maximum idle time of an upload.
const IDLE: Duration = Duration::from_secs(3_600);
/// Longest pause between two deletion passes.
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
        store.drop_abandoned(Some(IDLE)).await?;
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
        for id in surplus(&store.ended_jobs(K::NAME).await?, MAX_FINISHED, K::MOST_KEPT) {
            store.delete_job(id).await?;
        }
        Ok(())
    }
}

/// A job that has ended: its id, its owner and its weight.
type EndedJob = (Uuid, String, usize);

/// Returns the finished jobs to delete, given in order of their end, so that at most `most` are left and these weigh at most
/// `most_weight`: the oldest of the owner whose jobs weigh the most; if several weigh as much, the oldest of all.
fn surplus(ended: &[EndedJob], most: usize, most_weight: usize) -> Vec<Uuid> {
    // A job that weighs nothing takes a place.
    let weight = |job: &EndedJob| job.2.max(1);
    let mut by_owner: HashMap<&str, (VecDeque<&EndedJob>, usize)> = HashMap::new();
    for job in ended {
        let (jobs, total) = by_owner.entry(&job.1).or_default();
        jobs.push_back(job);
        *total += weight(job);
    }
    let (mut count, mut total) = (ended.len(), ended.iter().map(|job| job.2).sum::<usize>());
    let mut surplus = Vec::new();
    while count > most || total > most_weight {
        let heaviest = by_owner
            .values_mut()
            .filter(|(jobs, _)| !jobs.is_empty())
            .max_by_key(|(jobs, total)| (*total, Reverse(jobs.front().map(|job| job.0))));
        let Some((jobs, owned)) = heaviest else { break };
        let Some(oldest) = jobs.pop_front() else { break };
        (*owned, count, total) = (*owned - weight(oldest), count - 1, total - oldest.2);
        surplus.push(oldest.0);
    }
    surplus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_most_makes_room() {
        let job = |number: u128, owner: &str, weight| (Uuid::from_u128(number), owner.to_owned(), weight);
        let deleted = |ended: &[EndedJob], most, weight| {
            surplus(ended, most, weight).into_iter().map(|id| id.as_u128()).collect::<Vec<_>>()
        };
        let alone = [job(1, "", 5), job(2, "", 5), job(3, "", 5)];
        assert_eq!((deleted(&alone, 9, 10), deleted(&alone, 1, 100)), (vec![1], vec![1, 2]));
        assert_eq!((deleted(&alone, 3, 15), deleted(&[], 0, 0)), (vec![], vec![]));
        // The oldest is of another owner, who has less.
        let two = [job(1, "bob", 5), job(2, "alice", 5), job(3, "alice", 5), job(4, "alice", 5)];
        assert_eq!((deleted(&two, 2, 100), deleted(&two, 9, 9)), (vec![2, 3], vec![2, 3, 1]));
        let weightless = [job(1, "bob", 0), job(2, "alice", 0), job(3, "alice", 0)];
        assert_eq!(deleted(&weightless, 2, 0), [2]);
    }
}
