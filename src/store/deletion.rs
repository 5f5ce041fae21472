//! Deletions, on a full disk too: SQLite writes before it frees, in the room of the reserve if there is no other.

use super::error::StoreError;
use super::open::Store;
use super::reserve::Reserve;

impl Store {
    /// Runs a deletion, and writes over what it deleted. Where the disk is full, it runs once more with the room of the reserve; the
    /// argument of `deletion` is true then, and what is long has to go in pieces.
    pub(super) async fn delete<T, F>(&self, deletion: impl Fn(bool) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let release = || self.reserve.as_ref().is_some_and(Reserve::release);
        let deleted = match deletion(false).await {
            Err(StoreError::Full) if release() => deletion(true).await,
            outcome => outcome,
        };
        let forgotten = match self.forget_deleted().await {
            Err(StoreError::Full) if release() => self.forget_deleted().await,
            outcome => outcome,
        };
        if let Some(reserve) = &self.reserve {
            reserve.hold().await;
        }
        let deleted = deleted?;
        forgotten?;
        Ok(deleted)
    }

    /// Executes a statement, which deletes a block, until there is none, with no more than that in the log of writes.
    pub(super) async fn delete_blocks(&self, statement: &'static str, id: &str) -> Result<(), StoreError> {
        while sqlx::query(statement).bind(id).execute(&self.pool).await?.rows_affected() > 0 {
            self.forget_deleted().await?;
        }
        Ok(())
    }
}
