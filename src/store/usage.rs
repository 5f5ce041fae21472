//! Amounts that clients have in the store.

use super::error::{StoreError, count};
use super::open::Store;
use crate::access::StoredUsage;

impl Store {
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
