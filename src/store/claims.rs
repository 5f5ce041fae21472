//! Claims, each of which lets one process run a job to its end. A claim counts the attempt and sets a lease; a process that does not
//! renew it in time has lost it.

use super::error::{StoreError, count, duration, microseconds, uuid};
use super::job_row::{JobRow, job_row, seal_ends};
use super::open::Store;
use super::schema::query_all_columns;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Row};
use std::time::Duration;
use uuid::Uuid;

/// The name of one claim of one job.
pub type ClaimId = Uuid;

/// A job that this process is to run.
#[derive(Clone, Debug)]
pub struct ClaimedJob {
    pub id: Uuid,
    pub claim: ClaimId,
    pub owner: String,
    /// Its summary in lists, as JSON.
    pub summary: String,
    pub request: String,
    /// Its samples; `None` if they were deleted.
    pub dataset: Option<Uuid>,
    /// Number of claims, this one included.
    pub attempts: usize,
    /// Remaining time; `None` if there is no limit.
    pub time_left: Option<Duration>,
    /// Source of the numbers of an earlier claim.
    pub numerics: Option<String>,
    /// The damage of the job, which cannot be run then; the texts above may be empty.
    pub damage: Option<String>,
}

/// Another claim has the job, or it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("another process has taken over the job")]
pub struct LostClaim;

impl ClaimedJob {
    /// Reads the content of the job.
    fn read(&mut self, row: &AnyRow) -> Result<(), StoreError> {
        let JobRow { owner, summary, .. } = job_row(row)?;
        let dataset = row.try_get::<Option<String>, _>("dataset")?;
        let dataset = dataset.map(|text| text.parse::<Uuid>()).transpose();
        self.dataset = dataset.map_err(|error| StoreError::Damaged(error.to_string()))?;
        (self.owner, self.summary) = (owner, summary);
        (self.request, self.numerics) = (row.try_get("request")?, row.try_get("numerics")?);
        Ok(())
    }
}

impl Store {
    /// Claims a job of a kind that is queued, or whose lease is over, and that has not reached the limit of claims: of the owner
    /// with the fewest running jobs, and of those the one whose turn is the longest ago, the oldest. None of the owner `except` is claimed.
    pub async fn claim(
        &self,
        kind: &str,
        lease: Duration,
        most_attempts: usize,
        except: Option<&str>,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let claim = Uuid::new_v4();
        let statement = "UPDATE jobs SET status = 'running', claim = $1, attempts = attempts + 1, lease_until = {now} + $2, \
             started_at = COALESCE(started_at, {now}), revision = revision + 1 \
             WHERE id = (SELECT id FROM jobs WHERE kind = $3 AND cancel = 0 AND attempts < $4 AND ($5 IS NULL OR owner <> $5) \
             AND (status = 'queued' OR (status = 'running' AND lease_until < {now})) AND (deadline IS NULL OR deadline > {now}) \
             ORDER BY (SELECT COUNT(*) FROM jobs AS others WHERE others.kind = jobs.kind AND others.owner = jobs.owner \
             AND others.status = 'running' AND others.lease_until >= {now}), \
             (SELECT COALESCE(MAX(others.started_at), 0) FROM jobs AS others WHERE others.kind = jobs.kind \
             AND others.owner = jobs.owner), id LIMIT 1 {skip_locked}) \
             RETURNING id, attempts, deadline - {now} AS time_left";
        let mut transaction = self.pool.begin().await?;
        let claimed = sqlx::query(self.dialect.sql(statement))
            .bind(claim.to_string())
            .bind(microseconds(lease))
            .bind(kind)
            .bind(i64::try_from(most_attempts).unwrap_or(i64::MAX))
            .bind(except)
            .fetch_optional(&mut *transaction)
            .await?;
        let Some(claimed) = claimed else { return Ok(None) };
        let row = query_all_columns("SELECT * FROM jobs WHERE id = $1").bind(claimed.try_get::<String, _>("id")?);
        let row = match row.fetch_one(&mut *transaction).await.map_err(StoreError::from) {
            Err(error) if !matches!(error, StoreError::Damaged(_)) => return Err(error),
            row => row,
        };
        // A damaged job is claimed as well, and fails by its damage.
        transaction.commit().await?;
        let mut job = ClaimedJob {
            id: uuid(&claimed, "id")?,
            claim,
            owner: String::new(),
            summary: String::new(),
            request: String::new(),
            dataset: None,
            attempts: count(&claimed, "attempts")?,
            time_left: claimed.try_get::<Option<i64>, _>("time_left")?.map(duration),
            numerics: None,
            damage: None,
        };
        match row.and_then(|row| job.read(&row)) {
            Err(StoreError::Damaged(damage)) => job.damage = Some(damage),
            read => read?,
        }
        Ok(Some(job))
    }

    /// Renews the lease, and notes how much is done and what the run says of itself beside that. Returns true if the job is to be
    /// cancelled.
    pub async fn renew(
        &self,
        id: Uuid,
        claim: ClaimId,
        lease: Duration,
        done: usize,
        note: Option<&str>,
    ) -> Result<Result<bool, LostClaim>, StoreError> {
        let statement = "UPDATE jobs SET lease_until = {now} + $3, done = $4, note = $5, \
             revision = CASE WHEN done <> $4 OR COALESCE(note, '') <> COALESCE($5, '') THEN revision + 1 ELSE revision END \
             WHERE id = $1 AND claim = $2 AND status = 'running' RETURNING cancel";
        let row = sqlx::query(self.dialect.sql(statement))
            .bind(id.to_string())
            .bind(claim.to_string())
            .bind(microseconds(lease))
            .bind(i64::try_from(done).unwrap_or(i64::MAX))
            .bind(note)
            .fetch_all(&self.pool)
            .await?
            .pop();
        match row {
            Some(row) => Ok(Ok(row.try_get::<i64, _>("cancel")? != 0)),
            None => Ok(Err(LostClaim)),
        }
    }

    /// Notes what the numbers of a claimed job come from.
    pub async fn note_numerics(&self, id: Uuid, claim: ClaimId, numerics: &str) -> Result<(), StoreError> {
        let statement = "UPDATE jobs SET numerics = $3 WHERE id = $1 AND claim = $2";
        sqlx::query(statement).bind(id.to_string()).bind(claim.to_string()).bind(numerics).execute(&self.pool).await?;
        Ok(())
    }

    /// Gives a claimed job back to the queue, as if it had not been claimed.
    pub async fn release(&self, id: Uuid, claim: ClaimId) -> Result<(), StoreError> {
        let statement = "UPDATE jobs SET status = 'queued', claim = NULL, lease_until = NULL, attempts = attempts - 1, \
                         revision = revision + 1 WHERE id = $1 AND claim = $2 AND status = 'running'";
        sqlx::query(statement).bind(id.to_string()).bind(claim.to_string()).execute(&self.pool).await?;
        Ok(())
    }

    /// Asks for the end of a job, and returns false if it has ended. One that nobody runs is cancelled at once.
    pub async fn cancel(&self, id: Uuid) -> Result<bool, StoreError> {
        let statement = "UPDATE jobs SET cancel = 1 WHERE id = $1 AND status IN ('queued', 'running')";
        let asked = sqlx::query(statement).bind(id.to_string()).execute(&self.pool).await?.rows_affected();
        self.end_cancelled().await?;
        Ok(asked > 0)
    }

    /// Asks for the end of all jobs of a kind.
    pub async fn cancel_all(&self, kind: &str) -> Result<(), StoreError> {
        let statement = "UPDATE jobs SET cancel = 1 WHERE kind = $1 AND status IN ('queued', 'running')";
        sqlx::query(statement).bind(kind).execute(&self.pool).await?;
        self.end_cancelled().await
    }

    /// Ends what nobody runs and nobody should: jobs that are to be cancelled, and those of a kind that were claimed so often
    /// without an end, which fail for this reason. Returns the ids of the latter.
    pub async fn end_abandoned(
        &self,
        kind: &str,
        most_attempts: usize,
        failure: &str,
    ) -> Result<Vec<Uuid>, StoreError> {
        self.end_cancelled().await?;
        let statement = "UPDATE jobs SET status = 'failed', failure = $1, finished_at = {now}, claim = NULL, \
                         revision = revision + 1 WHERE status = 'running' AND lease_until < {now} AND attempts >= $2 AND kind = $3 \
                         RETURNING id";
        let query = sqlx::query(self.dialect.sql(statement)).bind(failure);
        self.end_all(query.bind(i64::try_from(most_attempts).unwrap_or(i64::MAX)).bind(kind)).await
    }

    /// Cuts leases that reach further than a lease ever does, as after the clock was set back: who renews one keeps it, and the
    /// others end.
    pub async fn shorten_leases(&self, lease: Duration) -> Result<(), StoreError> {
        // Much further, since another process may have a longer lease.
        let statement =
            "UPDATE jobs SET lease_until = {now} + $1 WHERE status = 'running' AND lease_until > {now} + 10 * $1";
        sqlx::query(self.dialect.sql(statement)).bind(microseconds(lease)).execute(&self.pool).await?;
        Ok(())
    }

    /// Ends jobs of a kind whose time is over and that nobody runs; they fail for this reason. Returns their ids.
    pub async fn end_overdue(&self, kind: &str, failure: &str) -> Result<Vec<Uuid>, StoreError> {
        let statement = "UPDATE jobs SET status = 'failed', failure = $1, finished_at = {now}, claim = NULL, revision = revision + 1 \
                         WHERE status IN ('queued', 'running') AND cancel = 0 AND deadline <= {now} \
                         AND (status = 'queued' OR lease_until < {now}) AND kind = $2 RETURNING id";
        self.end_all(sqlx::query(self.dialect.sql(statement)).bind(failure).bind(kind)).await
    }

    async fn end_cancelled(&self) -> Result<(), StoreError> {
        let statement = "UPDATE jobs SET status = 'cancelled', finished_at = {now}, claim = NULL, revision = revision + 1 \
                         WHERE cancel = 1 AND (status = 'queued' OR (status = 'running' AND lease_until < {now})) RETURNING id";
        self.end_all(sqlx::query(self.dialect.sql(statement))).await.map(|_| ())
    }

    /// Executes a statement that ends jobs and returns their ids.
    async fn end_all(&self, statement: Query<'_, Any, AnyArguments>) -> Result<Vec<Uuid>, StoreError> {
        let mut transaction = self.pool.begin().await?;
        let ended = statement.fetch_all(&mut *transaction).await?;
        seal_ends(&mut transaction, &ended).await?;
        transaction.commit().await?;
        Ok(ended.iter().filter_map(|row| uuid(row, "id").ok()).collect())
    }

    /// Ends all leases and uploads: a file has one process, so what an earlier one did not finish, nobody does.
    pub(super) async fn end_earlier_process(&self) -> Result<(), StoreError> {
        sqlx::query("UPDATE jobs SET lease_until = 0 WHERE status = 'running'").execute(&self.pool).await?;
        self.drop_abandoned(None).await
    }
}
