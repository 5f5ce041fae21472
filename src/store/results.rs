//! The end of a job, and the results that it leaves behind: its report, its scores in blocks, its adapter.

use super::adapters::{AdapterFiles, write_adapter};
use super::claims::{ClaimId, LostClaim};
use super::datasets::drop_unretained;
use super::error::StoreError;
use super::job_row::{JobStatus, seal_ends};
use super::open::Store;
use super::seal::{check_seal, seal};
use sqlx::{Any, Row, Transaction};
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

#[derive(Clone, Debug)]
pub enum JobEnd {
    Succeeded(JobOutput),
    /// For this reason, as JSON.
    Failed(String),
    Cancelled,
}

impl JobEnd {
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
                         revision = revision + 1 WHERE id = $1 AND claim = $2 AND status = 'running' RETURNING id";
        let failure = if let JobEnd::Failed(failure) = end { Some(failure.as_str()) } else { None };
        let ended = sqlx::query(self.dialect.sql(statement))
            .bind(id.to_string())
            .bind(claim.to_string())
            .bind(end.status().name())
            .bind(failure)
            .bind(i64::try_from(done).unwrap_or(i64::MAX))
            .bind(note)
            .fetch_all(&mut *transaction)
            .await?;
        if ended.is_empty() {
            transaction.rollback().await?;
            return Ok(Err(LostClaim));
        }
        seal_ends(&mut transaction, &ended).await?;
        if let JobEnd::Succeeded(JobOutput { report, header, scores, adapter, .. }) = end {
            write_results(&mut transaction, id, report, header, scores).await?;
            if let Some(adapter) = adapter {
                write_adapter(&mut transaction, id, adapter, self.dialect).await?;
            }
        }
        let dropped = drop_unretained(&mut transaction).await?;
        transaction.commit().await?;
        if dropped {
            self.forget_deleted().await;
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
        let statement = "SELECT report, header, blocks, seal FROM results WHERE job = $1";
        let row = sqlx::query(statement).bind(id.to_string()).fetch_optional(&self.readers).await?;
        let Some(row) = row else { return Ok(None) };
        let text = |column| row.try_get::<String, _>(column);
        let seal = result_seal(id, &text("report")?, &text("header")?, row.try_get("blocks")?)?;
        check_seal(&row, "seal", &seal, format_args!("the report of the job {id}"))?;
        Ok(Some(text(column)?))
    }

    /// One block of the scores of a job; none after the last.
    pub async fn score_block(&self, id: Uuid, block: usize) -> Result<Option<ScoreBlock>, StoreError> {
        let statement = "SELECT blocks, content, scores.seal AS seal FROM results LEFT JOIN scores \
                         ON scores.job = results.job AND block = $2 WHERE results.job = $1";
        let number = i64::try_from(block).unwrap_or(i64::MAX);
        let row = sqlx::query(statement).bind(id.to_string()).bind(number).fetch_optional(&self.readers).await?;
        let Some(row) = row else { return Ok(None) };
        let (content, blocks): (Option<String>, Option<i64>) = (row.try_get("content")?, row.try_get("blocks")?);
        let subject = format_args!("block {block} of the scores of the job {id}");
        match &content {
            Some(content) => check_seal(&row, "seal", &score_seal(id, number, blocks, content)?, subject)?,
            None if blocks.is_some_and(|blocks| number < blocks) => {
                return Err(StoreError::Damaged(format!("{subject} is missing")));
            }
            None => {}
        }
        Ok(content)
    }
}

async fn write_results(
    transaction: &mut Transaction<'_, Any>,
    job: Uuid,
    report: &str,
    header: &str,
    scores: &[ScoreBlock],
) -> Result<(), StoreError> {
    let blocks = i64::try_from(scores.len()).ok();
    sqlx::query("INSERT INTO results (job, report, header, blocks, seal) VALUES ($1, $2, $3, $4, $5)")
        .bind(job.to_string())
        .bind(report)
        .bind(header)
        .bind(blocks)
        .bind(result_seal(job, report, header, blocks)?)
        .execute(&mut **transaction)
        .await?;
    for (block, content) in (0_i64..).zip(scores) {
        sqlx::query("INSERT INTO scores (job, block, content, seal) VALUES ($1, $2, $3, $4)")
            .bind(job.to_string())
            .bind(block)
            .bind(&**content)
            .bind(score_seal(job, block, blocks, content)?)
            .execute(&mut **transaction)
            .await?;
    }
    Ok(())
}

fn result_seal(job: Uuid, report: &str, header: &str, blocks: Option<i64>) -> Result<String, StoreError> {
    seal(&(job.to_string(), header, blocks), report)
}

/// Returns the seal of a block of scores, which holds the number of all blocks, so that the last ones are missed.
fn score_seal(job: Uuid, block: i64, blocks: Option<i64>, content: &str) -> Result<String, StoreError> {
    seal(&(job.to_string(), block, blocks), content)
}
