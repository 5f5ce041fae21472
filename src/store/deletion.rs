//! Deletions, on a full disk too: SQLite writes before it frees, in the room of the reserve if there is no other.

use super::error::StoreError;
use super::open::Store;
use super::reserve::Reserve;
use sqlx::Row;
use std::sync::atomic::Ordering;

impl Store {
    /// Runs a deletion, which returns true if there was something to delete, and writes over what it deleted. Where the disk is full, it
    /// runs once more with the room of the reserve; the argument of `deletion` is true then, and what is long has to go in pieces.
    pub(super) async fn delete<F>(&self, deletion: impl Fn(bool) -> F) -> Result<bool, StoreError>
    where
        F: Future<Output = Result<bool, StoreError>>,
    {
        let deleted = match deletion(false).await {
            Err(StoreError::Full) if self.release_reserve() => deletion(true).await,
            outcome => outcome,
        };
        let is_overdue = self.is_log_kept.swap(false, Ordering::Relaxed);
        if is_overdue || matches!(deleted, Ok(true)) {
            self.forget_deleted().await;
        }
        if let Some(reserve) = &self.reserve {
            reserve.hold().await;
        }
        deleted
    }

    /// Writes over what was deleted, as far as the database leaves that to its clients. If it cannot be done now, the next deletion or
    /// upkeep does it: what was deleted is gone in any case.
    pub(super) async fn forget_deleted(&self) {
        let forgotten = match self.empty_log().await {
            Err(StoreError::Full) if self.release_reserve() => self.empty_log().await,
            outcome => outcome,
        };
        let reason = match forgotten {
            Ok(true) => return,
            Ok(false) => "somebody reads it".to_owned(),
            Err(error) => error.to_string(),
        };
        self.is_log_kept.store(true, Ordering::Relaxed);
        tracing::warn!(reason, "what was deleted stays in the log of writes for now");
    }

    /// Executes a statement, which deletes a block, until there is none, with no more than that in the log of writes.
    pub(super) async fn delete_blocks(&self, statement: &'static str, id: &str) -> Result<(), StoreError> {
        while sqlx::query(statement).bind(id).execute(&self.pool).await?.rows_affected() > 0 {
            if !self.empty_log().await? {
                self.is_log_kept.store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Empties the log of writes of a file of SQLite; returns false if a reader keeps it.
    async fn empty_log(&self) -> Result<bool, StoreError> {
        let Some(emptier) = &self.log_emptier else { return Ok(true) };
        // Only readers are in the way while nobody else writes.
        let _turn = self.pool.acquire().await?;
        let row = sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(emptier).await?;
        Ok(row.try_get::<i64, _>(0)? == 0)
    }

    fn release_reserve(&self) -> bool {
        self.reserve.as_ref().is_some_and(Reserve::release)
    }
}
