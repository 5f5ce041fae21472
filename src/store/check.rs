//! Checks of a whole store: every digest, and the structure of a file of SQLite.

use super::adapters::adapter_row;
use super::datasets::dataset_row;
use super::error::{StoreError, uuid};
use super::job_row::{JobStatus, job_row};
use super::open::Store;
use super::plans::plan_row;
use super::schema::{Dialect, SEALED};
use super::seal::{ContentCheck, check_seal, seal};
use sqlx::any::AnyRow;
use sqlx::{Executor, Row};

/// Counts of the rows that a check has read, and the faults of them.
#[derive(Clone, Debug, Default)]
pub struct StoreCheck {
    /// The version of the tables.
    pub version: i64,
    /// True if rows of this version keep digests.
    pub sealed: bool,
    pub datasets: usize,
    pub sample_blocks: usize,
    pub jobs: usize,
    pub reports: usize,
    pub score_blocks: usize,
    pub plans: usize,
    pub adapters: usize,
    /// Everything that is wrong, by name.
    pub faults: Vec<String>,
}

impl StoreCheck {
    /// Notes a fault and goes on; other errors than damage end the check.
    fn pass<T>(&mut self, outcome: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(StoreError::Damaged(fault)) => {
                self.faults.push(fault);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl Store {
    /// Reads everything and compares it with its digests.
    ///
    /// # Errors
    /// [`StoreError`] where the store cannot be read to its end; damage is among the faults instead.
    pub async fn verify(&self) -> Result<StoreCheck, StoreError> {
        // One transaction, so that what is deleted meanwhile is not missed. A store that is opened to be read has one connection.
        let begin = match self.dialect {
            Dialect::Sqlite => "BEGIN",
            Dialect::Postgres => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        };
        self.readers.execute(begin).await?;
        let check = self.verify_snapshot().await;
        let ended = self.readers.execute("ROLLBACK").await;
        let check = check?;
        ended?;
        Ok(check)
    }

    async fn verify_snapshot(&self) -> Result<StoreCheck, StoreError> {
        let version = self.version().await?;
        let mut check = StoreCheck { version, sealed: version >= SEALED, ..StoreCheck::default() };
        self.verify_structure(&mut check).await?;
        self.verify_datasets(&mut check).await?;
        self.verify_jobs(&mut check).await?;
        let plans = self.keys("SELECT * FROM plans").await;
        for row in check.pass(plans)?.unwrap_or_default() {
            check.plans += 1;
            check.pass(plan_row(&row))?;
        }
        if check.sealed {
            self.verify_adapters(&mut check).await?;
        }
        Ok(check)
    }

    async fn verify_structure(&self, check: &mut StoreCheck) -> Result<(), StoreError> {
        if self.dialect == Dialect::Postgres {
            return Ok(());
        }
        let rows = self.keys("PRAGMA integrity_check").await;
        for row in check.pass(rows)?.unwrap_or_default() {
            let told: String = row.try_get(0)?;
            check.faults.extend(told.lines().filter(|line| *line != "ok").map(|line| format!("the file: {line}")));
        }
        let rows = self.keys("PRAGMA foreign_key_check").await;
        for row in check.pass(rows)?.unwrap_or_default() {
            let [table, parent]: [String; 2] = [row.try_get(0)?, row.try_get(2)?];
            check.faults.push(format!("a row of {table} belongs to no row of {parent}"));
        }
        Ok(())
    }

    async fn verify_datasets(&self, check: &mut StoreCheck) -> Result<(), StoreError> {
        let statement = "SELECT datasets.*, (SELECT MIN(texts) FROM jobs WHERE jobs.dataset = datasets.dataset) AS digest \
                         FROM datasets WHERE state <> 'uploading' ORDER BY dataset";
        let rows = self.keys(statement).await;
        for row in check.pass(rows)?.unwrap_or_default() {
            check.datasets += 1;
            let outcome = self.verify_samples(&row, &mut check.sample_blocks).await;
            check.pass(outcome)?;
        }
        Ok(())
    }

    /// Compares the samples of a dataset, block by block and as a whole.
    async fn verify_samples(&self, row: &AnyRow, blocks: &mut usize) -> Result<(), StoreError> {
        let dataset = dataset_row(row)?;
        let count = row.try_get::<i64, _>("blocks")?;
        if !dataset.has_texts {
            let first =
                sqlx::query("SELECT block FROM samples WHERE dataset = $1 LIMIT 1").bind(dataset.key.to_string());
            let is_there = first.fetch_optional(&self.readers).await?.is_some();
            let fault = || StoreError::Damaged(format!("the dataset {} has texts that were deleted", dataset.key));
            return if is_there { Err(fault()) } else { Ok(()) };
        }
        let mut whole = ContentCheck::new(dataset.digest.or(row.try_get("digest")?));
        for block in 0..count {
            let statement = "SELECT * FROM samples WHERE dataset = $1 AND block = $2";
            let key = dataset.key.to_string();
            let row = sqlx::query(statement).bind(&*key).bind(block).fetch_optional(&self.readers).await?;
            let subject = format!("block {block} of the dataset {key}");
            let row = row.ok_or_else(|| StoreError::Damaged(format!("{subject} is missing")))?;
            let content: String = row.try_get("content")?;
            check_seal(&row, "seal", &seal(&(key, block), &content)?, subject)?;
            whole.add(&content);
            *blocks += 1;
        }
        whole.finish()
    }

    async fn verify_jobs(&self, check: &mut StoreCheck) -> Result<(), StoreError> {
        let rows = self.keys("SELECT id FROM jobs ORDER BY id").await;
        for row in check.pass(rows)?.unwrap_or_default() {
            check.jobs += 1;
            let outcome = self.verify_job(&row, check).await;
            check.pass(outcome)?;
        }
        Ok(())
    }

    async fn verify_job(&self, row: &AnyRow, check: &mut StoreCheck) -> Result<(), StoreError> {
        let id = uuid(row, "id")?;
        let row = sqlx::query("SELECT * FROM jobs WHERE id = $1").bind(id.to_string());
        let row = row.fetch_optional(&self.readers).await?;
        let missing = |part| StoreError::Damaged(format!("the {part} of the job {id} is missing"));
        let job = job_row(&row.ok_or_else(|| missing("row"))?)?;
        self.dataset_of(id).await?;
        if !check.sealed || job.status != JobStatus::Succeeded {
            return Ok(());
        }
        self.report(id).await?.ok_or_else(|| missing("report"))?;
        check.reports += 1;
        let mut block = 0;
        while self.score_block(id, block).await?.is_some() {
            block += 1;
        }
        check.score_blocks += block;
        Ok(())
    }

    async fn verify_adapters(&self, check: &mut StoreCheck) -> Result<(), StoreError> {
        let rows = self.keys("SELECT * FROM adapters").await;
        for row in check.pass(rows)?.unwrap_or_default() {
            let adapter = check.pass(adapter_row(&row))?;
            let Some(id) =
                adapter.filter(|_| matches!(row.try_get::<i64, _>("ready"), Ok(1))).map(|adapter| adapter.id)
            else {
                continue;
            };
            check.adapters += 1;
            if check.pass(self.adapter_files(id).await)?.is_some_and(|files| files.is_empty()) {
                check.faults.push(format!("the adapter {id} has no files"));
            }
        }
        Ok(())
    }

    /// Returns the rows of a statement, which hold no samples, reports or scores.
    async fn keys(&self, statement: &'static str) -> Result<Vec<AnyRow>, StoreError> {
        Ok(sqlx::query(statement).fetch_all(&self.readers).await?)
    }
}
