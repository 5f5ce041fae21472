//! Values of rows, read with what is wrong with them where something is.

use super::error::StoreError;
use sqlx::Row;
use sqlx::any::AnyRow;
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

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
