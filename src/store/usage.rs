//! Amounts that clients have in the store, and the room that is left.

use super::error::{StoreError, count};
use super::open::Store;
use crate::access::StoredUsage;

/// Estimated bytes of the report of a job.
const REPORT_BYTES: u64 = 64 << 10;

/// Estimated bytes of results for each unit of a job's weight: a score, with its part of what a line has beside scores.
const WEIGHT_BYTES: u64 = 16;

impl Store {
    /// Checks that a store in memory has room for a job of this weight with `bytes` bytes of samples, beside the results of the jobs that
    /// have not ended: they could not be kept later. A store that outlives the process has the room of its disk.
    ///
    /// # Errors
    /// [`StoreError::Full`] where there is none.
    pub async fn check_room(&self, weight: usize, bytes: u64) -> Result<(), StoreError> {
        if self.is_durable() {
            return Ok(());
        }
        let statement = "SELECT (SELECT page_size * (max_page_count - page_count + freelist_count) FROM pragma_page_size, \
                         pragma_max_page_count, pragma_page_count, pragma_freelist_count) AS left, COUNT(*) AS jobs, \
                         COALESCE(SUM(weight), 0) AS weight FROM jobs WHERE status IN ('queued', 'running')";
        let row = sqlx::query(statement).fetch_one(&self.pool).await?;
        let number = |column| count(&row, column).map(|number| number as u64);
        let (jobs, weight) = (number("jobs")? + 1, number("weight")?.saturating_add(weight as u64));
        let results = (jobs * REPORT_BYTES).saturating_add(weight.saturating_mul(WEIGHT_BYTES));
        if results.saturating_add(bytes) > number("left")? { Err(StoreError::Full) } else { Ok(()) }
    }

    /// Returns the amount that an owner has in the store. Texts that are gone take no room, and an upload takes what it has written.
    pub async fn usage(&self, owner: &str) -> Result<StoredUsage, StoreError> {
        let statement = "SELECT (SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM datasets WHERE owner = $1 AND texts = 1) AS bytes, \
                         (SELECT CAST(COUNT(*) AS BIGINT) FROM datasets WHERE owner = $1 AND state = 'ready') AS datasets, \
                         (SELECT CAST(COUNT(*) AS BIGINT) FROM jobs WHERE owner = $1) AS jobs";
        let row = sqlx::query(statement).bind(owner).fetch_one(&self.readers).await?;
        let number = |column| count(&row, column).map(|number| number as u64);
        Ok(StoredUsage { bytes: number("bytes")?, datasets: number("datasets")?, jobs: number("jobs")? })
    }
}
