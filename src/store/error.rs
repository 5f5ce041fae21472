//! Errors of the store, and the values of rows that are read with them.

use sqlx::Row;
use sqlx::any::AnyRow;
use sqlx::migrate::MigrateError;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::time::error::Elapsed;
use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It may work later: the database does not answer, is locked or is starting.
    #[error("the store does not answer: {0}")]
    Unavailable(String),
    /// Nothing more can be written.
    #[error("the store is full: its disk, or without `store.url` what `store.memory` allows")]
    Full,
    /// The file or the user may only be read from.
    #[error("the store cannot be written: {0}")]
    ReadOnly(String),
    /// Tables that this version does not know.
    #[error(
        "the store was written by another version of this program (its migration {0} is not known here, or differs); run the \
         version that wrote it, or a newer one"
    )]
    OtherVersion(i64),
    /// Another process has the file.
    #[error("another process uses {0}; several processes can share PostgreSQL")]
    InUse(String),
    /// A row that no version of this program writes, or that differs from its digest.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The request would overwrite something, or is not for this store.
    #[error("{0}")]
    Refused(String),
    #[error("the store failed: {0}")]
    Failed(String),
}

impl StoreError {
    /// Returns true if a retry may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable(_) | Self::Full => true,
            Self::ReadOnly(_)
            | Self::OtherVersion(_)
            | Self::InUse(_)
            | Self::Damaged(_)
            | Self::Refused(_)
            | Self::Failed(_) => false,
        }
    }
}

impl From<Elapsed> for StoreError {
    fn from(_: Elapsed) -> Self {
        Self::Unavailable("other requests of the client are still writing".to_owned())
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed => {
                Self::Unavailable(error.to_string())
            }
            sqlx::Error::Database(database) => {
                let (code, message) = (database.code().unwrap_or_default(), database.message());
                coded(&code, message).unwrap_or_else(|| Self::Failed(message.to_owned()))
            }
            sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnNotFound(_) => {
                Self::Damaged(error.to_string())
            }
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
            MigrateError::VersionMissing(version) | MigrateError::VersionMismatch(version) => {
                Self::OtherVersion(version)
            }
            error => Self::Failed(error.to_string()),
        }
    }
}

/// Returns the error for the codes of SQLite (a number, whose low byte is the primary code) and of PostgreSQL (five characters,
/// the first two of which are the class).
fn coded(code: &str, message: &str) -> Option<StoreError> {
    let message = message.to_owned();
    if code.len() == 5 {
        return match (&code[..2], code) {
            (_, "53100") => Some(StoreError::Full),
            (_, "25006" | "42501") => Some(StoreError::ReadOnly(message)),
            // A statement that was prepared before a newer version changed a table.
            (_, "0A000") => Some(StoreError::Unavailable(message)),
            // The same was written at the same moment. Lost connections, no resources, an operator's intervention, a conflict of transactions.
            (_, "23505") => Some(StoreError::Unavailable(message)),
            ("08" | "53" | "57" | "40", _) => Some(StoreError::Unavailable(message)),
            _ => None,
        };
    }
    match code.parse::<u32>().ok()? & 0xff {
        5 | 6 | 10 | 14 => Some(StoreError::Unavailable(message)),
        8 => Some(StoreError::ReadOnly(message)),
        13 => Some(StoreError::Full),
        11 | 26 => Some(StoreError::Damaged(message)),
        _ => None,
    }
}

pub(super) fn uuid(row: &AnyRow, column: &str) -> Result<Uuid, StoreError> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|_| StoreError::Damaged(format!("{column} is {text:?}, which is no UUID")))
}

pub(super) fn count(row: &AnyRow, column: &str) -> Result<usize, StoreError> {
    let number: i64 = row.try_get(column)?;
    usize::try_from(number).map_err(|_| StoreError::Damaged(format!("{column} is {number}")))
}

/// A duration as the database counts it.
pub(super) fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Returns a duration of `microseconds` microseconds; a negative one is over.
pub(super) fn duration(microseconds: i64) -> Duration {
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}

/// Microseconds since 1970 as a time.
pub(super) fn time(microseconds: i64) -> Result<OffsetDateTime, StoreError> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(microseconds) * 1_000);
    time.map_err(|_| StoreError::Damaged(format!("{microseconds} microseconds are no time")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_of_both_databases_are_told_apart() {
        let named = |code| match coded(code, "words") {
            None => "none",
            Some(StoreError::Unavailable(_)) => "unavailable",
            Some(StoreError::Full) => "full",
            Some(StoreError::ReadOnly(_)) => "read-only",
            Some(StoreError::Damaged(_)) => "damaged",
            Some(other) => panic!("{other}"),
        };
        // SQLITE_BUSY, SQLITE_BUSY_SNAPSHOT, SQLITE_IOERR_WRITE, SQLITE_CANTOPEN, SQLITE_READONLY_DBMOVED, SQLITE_FULL,
        // SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_CONSTRAINT.
        let sqlite = ["5", "517", "778", "14", "1032", "13", "11", "26", "19"].map(named);
        let expected = [
            "unavailable",
            "unavailable",
            "unavailable",
            "unavailable",
            "read-only",
            "full",
            "damaged",
            "damaged",
            "none",
        ];
        assert_eq!(sqlite, expected);
        let postgres =
            ["08006", "53300", "53100", "57P01", "40001", "0A000", "25006", "42501", "23505", "42601"].map(named);
        let expected = [
            "unavailable",
            "unavailable",
            "full",
            "unavailable",
            "unavailable",
            "unavailable",
            "read-only",
            "read-only",
            "unavailable",
            "none",
        ];
        assert_eq!(postgres, expected);
    }
}
