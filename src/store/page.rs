//! Lists, which leave out rows that are damaged: one of them must not hide the others.

use super::error::{StoreError, uuid};
use super::open::Store;
use futures::StreamExt;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Error};
use std::fmt::Display;
use uuid::Uuid;

/// Rows of a list, newest first.
#[derive(Clone, Debug)]
pub struct RowPage<T> {
    /// The rows that are sound.
    pub rows: Vec<T>,
    /// The key of the last row, sound or not, if there are more rows after it.
    pub next: Option<Uuid>,
}

impl Store {
    /// Reads a page from a query for one row more than fits.
    pub(super) async fn page<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        limit: usize,
        key: &str,
        read: fn(&AnyRow) -> Result<T, StoreError>,
    ) -> Result<RowPage<T>, StoreError> {
        let mut rows = self.each_row(query).await?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let keys = rows.iter().flatten().rev().filter_map(|row| uuid(row, key).ok());
        Ok(RowPage { next: keys.take(usize::from(has_more)).next(), rows: sound(rows, read) })
    }

    /// Reads the sound rows of a query.
    pub(super) async fn sound_rows<T>(
        &self,
        query: Query<'_, Any, AnyArguments>,
        read: fn(&AnyRow) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        Ok(sound(self.each_row(query).await?, read))
    }

    /// Fetches the rows of a query, with an error in the place of each that cannot be decoded.
    async fn each_row(
        &self,
        query: Query<'_, Any, AnyArguments>,
    ) -> Result<Vec<Result<AnyRow, StoreError>>, StoreError> {
        let mut connection = self.readers.acquire().await?;
        let rows: Vec<Result<AnyRow, Error>> = query.fetch(&mut *connection).collect().await;
        let row = |row| match row {
            Err(error @ (Error::Decode(_) | Error::ColumnDecode { .. })) => Ok(Err(error.into())),
            row => Ok(Ok(row?)),
        };
        rows.into_iter().map(row).collect()
    }
}

fn sound<T>(rows: Vec<Result<AnyRow, StoreError>>, read: fn(&AnyRow) -> Result<T, StoreError>) -> Vec<T> {
    rows.into_iter().filter_map(|row| listed(row.and_then(|row| read(&row)))).collect()
}

/// Returns an entry of a list, or logs the damage for which the list leaves it out.
pub fn listed<T, E: Display>(entry: Result<T, E>) -> Option<T> {
    entry.inspect_err(|error| tracing::error!(%error, "a list leaves out a row")).ok()
}
