//! Outcomes of jobs.

use super::adapters::{AdapterFiles, write_adapter};
use super::claims::{ClaimId, LostClaim};
use super::datasets::drop_unretained;
use super::error::StoreError;
use super::open::Store;
use super::status::JobStatus;
use sqlx::Row;
use uuid::Uuid;

/// Scores of some samples, as text.
pub type ScoreBlock = String;

/// Output of a job that succeeds.
#[derive(Clone, Debug, Default)]
pub struct JobOutput {
    /// Its report, as JSON.
    pub report: String,
    /// Header common to its scores, as JSON.
    pub header: String,
    pub scores: Vec<ScoreBlock>,
    /// The adapter that it made, under the name that it was submitted with.
    pub adapter: Option<AdapterFiles>,
    /// Tokens that ran; for the log.
    pub tokens: usize,
}

/// End of a job.
#[derive(Clone, Debug)]
pub enum JobEnd {
    Succeeded(JobOutput),
    /// For this reason, as JSON.
    Failed(String),
    Cancelled,
}

impl JobEnd {
    /// Returns the status of the job from then on.
    #[must_use]
    pub fn status(&self) -> JobStatus {
        match self {
            Self::Succeeded(_) => JobStatus::Succeeded,
            Self::Failed(_) => JobStatus::Failed,
            Self::Cancelled => JobStatus::Cancelled,
        }
    }
}

impl Store {
    /// Ends a job, with all that it leaves behind or with nothing.
    ///
    /// # Errors
    /// [`StoreError`]; then nothing has changed.
    pub async fn finish(
        &self,
        id: Uuid,
        claim: ClaimId,
        done: usize,
        note: Option<&str>,
        end: &JobEnd,
    ) -> Result<Result<(), LostClaim>, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let statement = "UPDATE jobs SET status = $3, failure = $4, done = $5, note = $6, finished_at = {now}, claim = NULL, \
                         revision = revision + 1 WHERE id = $1 AND claim = $2 AND status = 'running'";
        let failure = if let JobEnd::Failed(failure) = end { Some(failure.as_str()) } else { None };
        let changed = sqlx::query(self.dialect.sql(statement))
            .bind(id.to_string())
            .bind(claim.to_string())
            .bind(end.status().name())
            .bind(failure)
            .bind(i64::try_from(done).unwrap_or(i64::MAX))
            .bind(note)
            .execute(&mut *transaction)
            .await?
            .rows_affected();
        if changed == 0 {
            transaction.rollback().await?;
            return Ok(Err(LostClaim));
        }
        if let JobEnd::Succeeded(JobOutput { report, header, scores, adapter, .. }) = end {
            let statement = "INSERT INTO results (job, report, header) VALUES ($1, $2, $3)";
            sqlx::query(statement)
                .bind(id.to_string())
                .bind(&**report)
                .bind(&**header)
                .execute(&mut *transaction)
                .await?;
            for (block, content) in (0_i64..).zip(scores) {
                let statement = "INSERT INTO scores (job, block, content) VALUES ($1, $2, $3)";
                let query = sqlx::query(statement).bind(id.to_string()).bind(block).bind(&**content);
                query.execute(&mut *transaction).await?;
            }
            if let Some(adapter) = adapter {
                write_adapter(&mut transaction, id, adapter, self.dialect).await?;
            }
        }
        let dropped = drop_unretained(&mut transaction).await?;
        transaction.commit().await?;
        if dropped && let Err(error) = self.forget_deleted().await {
            tracing::warn!(%error, "texts that are deleted are not written over now");
        }
        Ok(Ok(()))
    }

    /// The report of a job, as JSON; none until it has succeeded.
    pub async fn report(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        self.result(id, "report").await
    }

    /// Returns the header common to the scores of a job, as JSON; `None` until it has succeeded.
    pub async fn score_header(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        self.result(id, "header").await
    }

    async fn result(&self, id: Uuid, column: &'static str) -> Result<Option<String>, StoreError> {
        let statement = "SELECT report, header FROM results WHERE job = $1";
        let row = sqlx::query(statement).bind(id.to_string()).fetch_optional(&self.pool).await?;
        Ok(row.map(|row| row.try_get(column)).transpose()?)
    }

    /// One block of the scores of a job; none after the last.
    pub async fn score_block(&self, id: Uuid, block: usize) -> Result<Option<ScoreBlock>, StoreError> {
        let statement = "SELECT content FROM scores WHERE job = $1 AND block = $2";
        let block = i64::try_from(block).unwrap_or(i64::MAX);
        let row = sqlx::query(statement).bind(id.to_string()).bind(block).fetch_optional(&self.pool).await?;
        Ok(row.map(|row| row.try_get("content")).transpose()?)
    }
}
