//! Rows of jobs, with the seals of what they are about and of how they ended.

use super::error::{StoreError, count, time, uuid};
use super::seal::{check_seal, seal};
use serde::Serialize;
use sqlx::any::AnyRow;
use sqlx::{Any, Row, Transaction};
use strum::{EnumString, IntoStaticStr, VariantNames};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

/// A job as it stands.
#[derive(Clone, Debug)]
pub struct JobRow {
    pub id: Uuid,
    pub owner: String,
    pub status: JobStatus,
    /// Its summary in lists, as JSON.
    pub summary: String,
    pub done: usize,
    /// Note of its run on itself beside that, as JSON.
    pub note: Option<String>,
    /// Grows with each change.
    pub revision: i64,
    pub created_at: OffsetDateTime,
    pub started_at: Option<OffsetDateTime>,
    pub finished_at: Option<OffsetDateTime>,
    /// The reason for which it failed, as JSON.
    pub failure: Option<String>,
    pub deadline: Option<OffsetDateTime>,
}

pub(super) fn job_row(row: &AnyRow) -> Result<JobRow, StoreError> {
    let (id, status) = (uuid(row, "id")?, JobStatus::parse(row.try_get("status")?)?);
    check_seal(row, "seal", &job_seal(row)?, format_args!("the job {id}"))?;
    if status.is_final() {
        check_seal(row, "end_seal", &end_seal(row)?, format_args!("the end of the job {id}"))?;
    }
    Ok(JobRow {
        id,
        owner: row.try_get("owner")?,
        status,
        summary: row.try_get("summary")?,
        done: count(row, "done")?,
        note: row.try_get("note")?,
        revision: row.try_get("revision")?,
        created_at: time(row.try_get("created_at")?)?,
        started_at: row.try_get::<Option<i64>, _>("started_at")?.map(time).transpose()?,
        finished_at: row.try_get::<Option<i64>, _>("finished_at")?.map(time).transpose()?,
        failure: row.try_get("failure")?,
        deadline: row.try_get::<Option<i64>, _>("deadline")?.map(time).transpose()?,
    })
}

/// Returns the seal of what a job is about, which never changes. Its dataset is known by the digest of its texts.
pub(super) fn job_seal(row: &AnyRow) -> Result<String, StoreError> {
    let text = |column| row.try_get::<String, _>(column);
    let texts: Option<String> = row.try_get("texts")?;
    let times = (row.try_get::<i64, _>("created_at")?, row.try_get::<Option<i64>, _>("deadline")?);
    let fields = (text("id")?, text("kind")?, text("owner")?, text("model")?, text("summary")?, texts);
    seal(&(fields, row.try_get::<i64, _>("weight")?, times), text("request")?)
}

/// Returns the seal of how a job ended.
fn end_seal(row: &AnyRow) -> Result<String, StoreError> {
    let text = |column| row.try_get::<Option<String>, _>(column);
    let number = |column| row.try_get::<Option<i64>, _>(column);
    let numbers = [number("done")?, number("revision")?, number("started_at")?, number("finished_at")?];
    seal(&(text("id")?, text("status")?, numbers, text("note")?), text("failure")?.unwrap_or_default())
}

/// Seals jobs that have just ended, in the same transaction. One that is damaged is read no more, and stays without.
pub(super) async fn seal_ends(transaction: &mut Transaction<'_, Any>, ended: &[AnyRow]) -> Result<(), StoreError> {
    for row in ended {
        let id: String = row.try_get("id")?;
        let statement =
            "SELECT id, status, done, revision, started_at, finished_at, note, failure FROM jobs WHERE id = $1";
        let row = sqlx::query(statement).bind(&*id).fetch_one(&mut **transaction).await;
        match row.map_err(StoreError::from).and_then(|row| end_seal(&row)) {
            Ok(seal) => {
                let query = sqlx::query("UPDATE jobs SET end_seal = $2 WHERE id = $1").bind(&*id).bind(seal);
                query.execute(&mut **transaction).await?;
            }
            Err(error @ StoreError::Damaged(_)) => tracing::error!(job = id, %error, "a job ends unsealed"),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Status of a job. Queued goes to running or cancelled; running goes to succeeded, failed or cancelled, and back to queued
/// where the process that runs it ends. Nothing leaves a final state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = Status)]
pub enum JobStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    Cancelled,
}

impl JobStatus {
    /// Returns true if nothing will change any more.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::Queued | Self::Running => false,
            Self::Succeeded | Self::Failed | Self::Cancelled => true,
        }
    }

    /// The name that clients, metrics and the store see.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The status of this name.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] where there is none.
    pub(super) fn parse(name: &str) -> Result<Self, StoreError> {
        name.parse().map_err(|_| StoreError::Damaged(format!("the status of a job is {name:?}")))
    }
}
