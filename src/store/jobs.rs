//! Submission, queries and deletion of jobs.

use super::adapters::{AdapterName, claim_name};
use super::datasets::DatasetKey;
use super::error::{StoreError, count, microseconds, uuid};
use super::job_row::{JobRow, JobStatus, job_row, job_seal};
use super::open::Store;
use super::page::RowPage;
use super::schema::query_all_columns;
use crate::access::Principal;
use sqlx::{Any, AnyConnection, Row, Transaction};
use std::time::Duration;
use uuid::Uuid;

/// A job to be queued.
#[derive(Clone, Debug)]
pub struct NewJob {
    pub id: Uuid,
    pub owner: String,
    /// Kind of job, which runs it.
    pub kind: &'static str,
    pub model: String,
    /// Its summary in lists, as JSON.
    pub summary: String,
    pub request: String,
    pub dataset: DatasetKey,
    /// The address of their content.
    pub texts: String,
    /// Amount that it leaves behind, in the units of the layer above.
    pub weight: usize,
    /// The client's name for this submission.
    pub key: Option<IdempotencyKey>,
    /// Time after its submission by which it must have ended.
    pub timeout: Option<Duration>,
    /// The adapter that it makes, whose name is taken from now on.
    pub adapter: Option<AdapterName>,
}

/// The name that a client gives a submission, so that sending it again does not submit it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    /// A digest of the client's key.
    pub key: String,
    /// A digest of what is submitted.
    pub digest: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    Queued,
    /// The key is that of an earlier job, with the digest of what was submitted then.
    Known {
        job: Uuid,
        digest: String,
    },
    /// The name of its adapter is taken.
    NameTaken,
}

/// Selection of jobs to list.
#[derive(Clone, Debug)]
pub struct JobQuery {
    /// Only jobs with this status.
    pub status: Option<JobStatus>,
    /// Only those of the model of this id.
    pub model: Option<String>,
    /// Only those older than this one, which may be gone.
    pub after: Option<Uuid>,
    /// Maximum number of jobs.
    pub limit: usize,
}

impl Store {
    /// Queues a job, unless its key is known. The samples must be complete.
    pub async fn submit(&self, job: &NewJob) -> Result<Submitted, StoreError> {
        let mut transaction = self.pool.begin().await?;
        self.insert_job(&mut transaction, job).await?;
        if let Some(key) = &job.key
            && let Some(known) = claim_key(&mut transaction, &job.owner, key, job.id).await?
        {
            transaction.rollback().await?;
            return Ok(known);
        }
        if let Some(adapter) = &job.adapter
            && !claim_name(&mut transaction, adapter, job.id).await?
        {
            transaction.rollback().await?;
            return Ok(Submitted::NameTaken);
        }
        transaction.commit().await?;
        Ok(Submitted::Queued)
    }

    async fn insert_job(&self, transaction: &mut Transaction<'_, Any>, job: &NewJob) -> Result<(), StoreError> {
        let statement = "INSERT INTO jobs (id, kind, status, model, summary, request, dataset, weight, done, revision, created_at, \
             attempts, cancel, deadline, owner, texts) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, 1, {now}, 0, 0, {now} + $9, $10, $11) \
             RETURNING *";
        let inserted = query_all_columns(self.dialect.sql(statement))
            .bind(job.id.to_string())
            .bind(job.kind)
            .bind(JobStatus::Queued.name())
            .bind(&*job.model)
            .bind(&*job.summary)
            .bind(&*job.request)
            .bind(job.dataset.to_string())
            .bind(i64::try_from(job.weight).unwrap_or(i64::MAX))
            .bind(job.timeout.map(microseconds))
            .bind(&*job.owner)
            .bind(&*job.texts)
            .fetch_all(&mut **transaction)
            .await?;
        for row in &inserted {
            let query = sqlx::query("UPDATE jobs SET seal = $2 WHERE id = $1").bind(job.id.to_string());
            query.bind(job_seal(row)?).execute(&mut **transaction).await?;
        }
        Ok(())
    }

    /// The job that an owner submitted under a key, by its digest, with the digest of what was submitted.
    pub async fn submitted_under(&self, owner: &str, key: &str) -> Result<Option<Submitted>, StoreError> {
        let mut connection = self.readers.acquire().await?;
        known(&mut connection, owner, key).await
    }

    /// A job of a kind as it stands.
    pub async fn job(&self, kind: &str, id: Uuid) -> Result<Option<JobRow>, StoreError> {
        let statement = "SELECT * FROM jobs WHERE id = $1 AND kind = $2";
        let row = query_all_columns(statement).bind(id.to_string()).bind(kind).fetch_optional(&self.readers).await?;
        row.as_ref().map(job_row).transpose()
    }

    /// Returns the owner of a job, which may be damaged otherwise.
    pub async fn job_owner(&self, kind: &str, id: Uuid) -> Result<Option<String>, StoreError> {
        let statement = "SELECT owner FROM jobs WHERE id = $1 AND kind = $2";
        Ok(sqlx::query_scalar(statement).bind(id.to_string()).bind(kind).fetch_optional(&self.readers).await?)
    }

    /// Returns the jobs of a kind that a client sees, newest first.
    pub async fn jobs(&self, kind: &str, client: &Principal, query: &JobQuery) -> Result<RowPage<JobRow>, StoreError> {
        // PostgreSQL has no texts with such a character.
        if query.model.as_ref().is_some_and(|model| model.contains('\0')) {
            return Ok(RowPage { rows: Vec::new(), next: None });
        }
        // Ids of version 7 grow with time, as texts as well.
        let statement = "SELECT * FROM jobs WHERE kind = $1 AND ($2 IS NULL OR status = $2) AND ($3 IS NULL OR model = $3) \
                         AND ($4 IS NULL OR id < $4) AND ($6 IS NULL OR owner = $6) ORDER BY id DESC LIMIT $5";
        let rows = query_all_columns(statement)
            .bind(kind)
            .bind(query.status.map(JobStatus::name))
            .bind(query.model.as_deref())
            .bind(query.after.map(|id| id.to_string()))
            .bind(i64::try_from(query.limit).unwrap_or(i64::MAX).saturating_add(1))
            .bind(client.restriction());
        self.page(rows, query.limit, "id", job_row).await
    }

    /// Counts the jobs of the kind, owner, model and texts of this job that had succeeded before it was submitted.
    pub async fn earlier_jobs(&self, id: Uuid) -> Result<usize, StoreError> {
        let statement = "SELECT CAST(COUNT(*) AS BIGINT) AS jobs FROM jobs AS earlier, jobs AS this WHERE this.id = $1 \
                         AND earlier.kind = this.kind AND earlier.owner = this.owner AND earlier.model = this.model \
                         AND earlier.texts = this.texts AND earlier.status = 'succeeded' AND earlier.finished_at <= this.created_at";
        count(&sqlx::query(statement).bind(id.to_string()).fetch_one(&self.readers).await?, "jobs")
    }

    /// Counts the jobs of a kind that have not ended: all, and those of an owner.
    pub async fn unfinished(&self, kind: &str, owner: &str) -> Result<(usize, usize), StoreError> {
        let statement = "SELECT CAST(COUNT(*) AS BIGINT) AS jobs, CAST(COUNT(CASE WHEN owner = $2 THEN 1 END) AS BIGINT) AS owned \
                         FROM jobs WHERE kind = $1 AND status IN ('queued', 'running')";
        let row = sqlx::query(statement).bind(kind).bind(owner).fetch_one(&self.readers).await?;
        Ok((count(&row, "jobs")?, count(&row, "owned")?))
    }

    /// The jobs of a kind that have ended, the first to end first, with their owners and weights.
    pub async fn ended_jobs(&self, kind: &str) -> Result<Vec<(Uuid, String, usize)>, StoreError> {
        let statement = "SELECT id, owner, weight FROM jobs WHERE kind = $1 AND status NOT IN ('queued', 'running') ORDER BY finished_at, id";
        let rows = sqlx::query(statement).bind(kind).fetch_all(&self.readers).await?;
        rows.iter().map(|row| Ok((uuid(row, "id")?, row.try_get("owner")?, count(row, "weight")?))).collect()
    }

    /// Deletes a job that has ended, with its results, and with its samples if they are its own. Returns true if there was such a job.
    pub async fn delete_job(&self, id: Uuid) -> Result<bool, StoreError> {
        self.delete(|in_pieces| self.try_to_delete_job(id, in_pieces)).await
    }

    async fn try_to_delete_job(&self, id: Uuid, in_pieces: bool) -> Result<bool, StoreError> {
        if in_pieces {
            self.delete_blocks_of_job(id).await?;
        }
        let mut transaction = self.pool.begin().await?;
        let samples = "DELETE FROM datasets WHERE state = 'inline' AND dataset = \
                       (SELECT dataset FROM jobs WHERE id = $1 AND status NOT IN ('queued', 'running'))";
        sqlx::query(samples).bind(id.to_string()).execute(&mut *transaction).await?;
        let job = "DELETE FROM jobs WHERE id = $1 AND status NOT IN ('queued', 'running')";
        let deleted = sqlx::query(job).bind(id.to_string()).execute(&mut *transaction).await?.rows_affected();
        transaction.commit().await?;
        Ok(deleted > 0)
    }

    /// Deletes the samples and scores of a job that has ended. If it is cut off, the scores that are missing are named as damage.
    async fn delete_blocks_of_job(&self, id: Uuid) -> Result<(), StoreError> {
        let statement = "SELECT datasets.dataset AS dataset FROM datasets JOIN jobs ON jobs.dataset = datasets.dataset \
                         WHERE jobs.id = $1 AND datasets.state = 'inline' AND jobs.status NOT IN ('queued', 'running')";
        let row = sqlx::query(statement).bind(id.to_string()).fetch_optional(&self.readers).await?;
        if let Some(row) = row {
            self.delete_blocks_of_dataset(uuid(&row, "dataset")?).await?;
        }
        let statement = "DELETE FROM scores WHERE job = (SELECT id FROM jobs WHERE id = $1 AND status NOT IN ('queued', 'running')) \
                         AND block = (SELECT MIN(block) FROM scores WHERE job = $1)";
        self.delete_blocks(statement, &id.to_string()).await
    }

    /// Deletes the jobs that ended longer ago than this, and returns their number.
    pub async fn delete_ended_before(&self, age: Duration) -> Result<usize, StoreError> {
        let statement = "SELECT id FROM jobs WHERE finished_at < {now} - $1";
        let query = sqlx::query(self.dialect.sql(statement)).bind(microseconds(age));
        let mut deleted = 0;
        for id in self.sound_rows(query, |row| uuid(row, "id")).await? {
            deleted += usize::from(self.delete_job(id).await?);
        }
        Ok(deleted)
    }
}

/// Notes the key for the job, or returns what is known of it if another job has it.
async fn claim_key(
    transaction: &mut Transaction<'_, Any>,
    owner: &str,
    key: &IdempotencyKey,
    job: Uuid,
) -> Result<Option<Submitted>, StoreError> {
    let statement =
        "INSERT INTO submissions (owner, client_key, digest, job) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING";
    let query = sqlx::query(statement).bind(owner).bind(&*key.key).bind(&*key.digest).bind(job.to_string());
    if query.execute(&mut **transaction).await?.rows_affected() > 0 {
        return Ok(None);
    }
    known(&mut *transaction, owner, &key.key).await
}

async fn known(connection: &mut AnyConnection, owner: &str, key: &str) -> Result<Option<Submitted>, StoreError> {
    let statement = "SELECT job, digest FROM submissions WHERE owner = $1 AND client_key = $2";
    let row = sqlx::query(statement).bind(owner).bind(key).fetch_optional(connection).await?;
    row.map(|row| Ok(Submitted::Known { job: uuid(&row, "job")?, digest: row.try_get("digest")? })).transpose()
}
