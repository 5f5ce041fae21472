//! Datasets: samples in blocks, written one after the other and readable once all are there.

use super::error::{StoreError, count, microseconds, time, uuid};
use super::open::Store;
use super::page::RowPage;
use super::schema::query_all_columns;
use super::seal::{check_seal, seal};
use crate::access::Principal;
use sqlx::any::AnyRow;
use sqlx::{Any, Row, Transaction};
use std::time::Duration;
use time::OffsetDateTime;
use uuid::Uuid;

/// Key under which a dataset is stored; its id, the address of its content, is known only once it is complete.
pub type DatasetKey = Uuid;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatasetState {
    /// Not complete.
    Uploading,
    /// Complete, with an id.
    Ready,
    /// The samples of one job.
    Inline,
}

/// A complete dataset.
#[derive(Clone, Debug)]
pub struct DatasetRow {
    pub key: DatasetKey,
    pub owner: String,
    /// The address of its content; none for the samples of a job.
    pub id: Option<String>,
    /// The address of its content as its id or its job has it; none for jobs of old versions.
    pub digest: Option<String>,
    /// Its description, as JSON.
    pub description: String,
    /// True if the texts are kept after an audit has used them.
    pub retain: bool,
    pub has_texts: bool,
    pub created_at: OffsetDateTime,
}

impl DatasetRow {
    /// Creates the placeholder of a dataset that is gone, with what is known of it.
    ///
    /// # Errors
    /// [`serde_json::Error`] if the description has no form as JSON.
    pub fn gone(
        id: &str,
        description: &impl serde::Serialize,
        created_at: OffsetDateTime,
    ) -> Result<Self, serde_json::Error> {
        let (key, description) = (DatasetKey::nil(), serde_json::to_string(description)?);
        let id = Some(id.to_owned());
        let (owner, digest) = (String::new(), id.clone());
        Ok(Self { key, owner, id, digest, description, retain: false, has_texts: false, created_at })
    }
}

impl DatasetState {
    fn name(self) -> &'static str {
        match self {
            Self::Uploading => "uploading",
            Self::Ready => "ready",
            Self::Inline => "inline",
        }
    }
}

impl Store {
    /// Begins a dataset of an owner, without samples.
    pub async fn begin_dataset(&self, owner: &str, retain: bool) -> Result<DatasetKey, StoreError> {
        let key = Uuid::now_v7();
        let statement = "INSERT INTO datasets (dataset, state, description, blocks, retain, texts, created_at, touched_at, owner) \
                         VALUES ($1, $2, '', 0, $3, 1, {now}, {now}, $4)";
        sqlx::query(self.dialect.sql(statement))
            .bind(key.to_string())
            .bind(DatasetState::Uploading.name())
            .bind(i64::from(retain))
            .bind(owner)
            .execute(&self.pool)
            .await?;
        Ok(key)
    }

    /// Adds the block of this number, from 0, to a dataset that is not complete.
    pub async fn add_block(&self, key: DatasetKey, block: usize, content: &str) -> Result<(), StoreError> {
        let mut transaction = self.pool.begin().await?;
        let statement = "INSERT INTO samples (dataset, block, content, seal) VALUES ($1, $2, $3, $4)";
        sqlx::query(statement)
            .bind(key.to_string())
            .bind(i64::try_from(block).unwrap_or(i64::MAX))
            .bind(content)
            .bind(seal(&(key.to_string(), block), content)?)
            .execute(&mut *transaction)
            .await?;
        let statement =
            "UPDATE datasets SET blocks = blocks + 1, bytes = bytes + $2, touched_at = {now} WHERE dataset = $1";
        let query = sqlx::query(self.dialect.sql(statement)).bind(key.to_string());
        query.bind(i64::try_from(content.len()).unwrap_or(i64::MAX)).execute(&mut *transaction).await?;
        Ok(transaction.commit().await?)
    }

    /// Completes a dataset, under an id or as the samples of a job, and returns the key under which the samples are. If its owner has a
    /// sound dataset of the id already with its texts, the new one is dropped; one that is damaged or without texts is replaced.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if an unfinished job uses the damaged dataset of the id.
    pub async fn complete_dataset(
        &self,
        key: DatasetKey,
        id: Option<&str>,
        description: &str,
    ) -> Result<DatasetKey, StoreError> {
        match self.try_to_complete(key, id, description).await {
            // The same content was completed at the same moment; now it is there.
            Err(StoreError::Unavailable(_)) => self.try_to_complete(key, id, description).await,
            completed => completed,
        }
    }

    async fn try_to_complete(
        &self,
        key: DatasetKey,
        id: Option<&str>,
        description: &str,
    ) -> Result<DatasetKey, StoreError> {
        let mut transaction = self.pool.begin().await?;
        if let Some(id) = id
            && let Some(known) = take_address(&mut transaction, key, id).await?
        {
            let statement = "DELETE FROM datasets WHERE dataset = $1";
            sqlx::query(statement).bind(key.to_string()).execute(&mut *transaction).await?;
            transaction.commit().await?;
            return Ok(known);
        }
        let state = if id.is_some() { DatasetState::Ready } else { DatasetState::Inline };
        let statement = "UPDATE datasets SET address = $2, state = $3, description = $4 WHERE dataset = $1 RETURNING *";
        let completed = query_all_columns(statement)
            .bind(key.to_string())
            .bind(id)
            .bind(state.name())
            .bind(description)
            .fetch_all(&mut *transaction)
            .await?;
        for row in &completed {
            let query = sqlx::query("UPDATE datasets SET seal = $2 WHERE dataset = $1").bind(key.to_string());
            query.bind(dataset_seal(row)?).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(key)
    }

    /// Drops a dataset and its samples, complete or not.
    pub async fn drop_dataset(&self, key: DatasetKey) -> Result<(), StoreError> {
        self.delete_dataset(key).await.map(|_| ())
    }

    /// Drops what nobody completes: uploads that have not grown for so long, or of any age, and samples of jobs that were never queued.
    pub async fn drop_abandoned(&self, idle: Option<Duration>) -> Result<(), StoreError> {
        let statement = "DELETE FROM datasets WHERE ($1 IS NULL OR touched_at < {now} - $1) AND (state = 'uploading' \
                         OR (state = 'inline' AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.dataset = datasets.dataset)))";
        let idle = idle.map(microseconds);
        let drop = || sqlx::query(self.dialect.sql(statement)).bind(idle).execute(&self.pool);
        self.delete(async |_| Ok(drop().await?.rows_affected() > 0)).await.map(|_| ())
    }

    /// The dataset of an id, as a client sees it: its own, or else another's.
    pub async fn dataset(&self, client: &Principal, id: &str) -> Result<Option<DatasetRow>, StoreError> {
        // PostgreSQL has no texts with such a character.
        if id.contains('\0') {
            return Ok(None);
        }
        let statement = "SELECT * FROM datasets WHERE address = $1 AND state = 'ready' AND ($3 IS NULL OR owner = $3) \
                         ORDER BY CASE WHEN owner = $2 THEN 0 ELSE 1 END, dataset LIMIT 1";
        let query = query_all_columns(statement).bind(id).bind(client.name()).bind(client.restriction());
        let row = query.fetch_optional(&self.readers).await?;
        row.as_ref().map(dataset_row).transpose()
    }

    /// Returns the key of an owner's dataset, which may be damaged otherwise.
    pub async fn dataset_key(&self, owner: &str, id: &str) -> Result<Option<DatasetKey>, StoreError> {
        // PostgreSQL has no texts with such a character.
        if id.contains('\0') {
            return Ok(None);
        }
        let statement = "SELECT dataset FROM datasets WHERE address = $1 AND state = 'ready' AND owner = $2";
        let row = sqlx::query(statement).bind(id).bind(owner).fetch_optional(&self.readers).await?;
        row.map(|row| uuid(&row, "dataset")).transpose()
    }

    /// The dataset of a job, as long as it is there.
    pub async fn dataset_of(&self, job: Uuid) -> Result<Option<DatasetRow>, StoreError> {
        let statement = "SELECT datasets.*, jobs.texts AS digest FROM datasets JOIN jobs ON jobs.dataset = datasets.dataset \
                         WHERE jobs.id = $1 AND state <> 'uploading'";
        let row = query_all_columns(statement).bind(job.to_string()).fetch_optional(&self.readers).await?;
        let Some(row) = row else { return Ok(None) };
        let (dataset, digest) = (dataset_row(&row)?, row.try_get::<Option<String>, _>("digest")?);
        if digest.is_some() && dataset.id.is_some() && digest != dataset.id {
            return Err(StoreError::Damaged(format!("the job {job} has other texts than its dataset {}", dataset.key)));
        }
        Ok(Some(DatasetRow { digest: digest.or(dataset.digest), ..dataset }))
    }

    /// Returns the datasets with an id that a client sees, newest first; only those older than `after`.
    pub async fn datasets(
        &self,
        client: &Principal,
        after: Option<DatasetKey>,
        limit: usize,
    ) -> Result<RowPage<DatasetRow>, StoreError> {
        let statement = "SELECT * FROM datasets WHERE state = 'ready' AND ($1 IS NULL OR dataset < $1) \
                         AND ($3 IS NULL OR owner = $3) ORDER BY dataset DESC LIMIT $2";
        let rows = query_all_columns(statement)
            .bind(after.map(|key| key.to_string()))
            .bind(i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1))
            .bind(client.restriction());
        self.page(rows, limit, "dataset", dataset_row).await
    }

    /// One block of samples; none after the last.
    pub async fn sample_block(&self, key: DatasetKey, block: usize) -> Result<Option<String>, StoreError> {
        let statement = "SELECT blocks, texts, content, samples.seal AS seal FROM datasets LEFT JOIN samples \
                         ON samples.dataset = datasets.dataset AND block = $2 WHERE datasets.dataset = $1";
        let number = i64::try_from(block).unwrap_or(i64::MAX);
        let row = sqlx::query(statement).bind(key.to_string()).bind(number).fetch_optional(&self.readers).await?;
        let Some(row) = row else { return Ok(None) };
        let content: Option<String> = row.try_get("content")?;
        // Of one without texts nothing is there.
        let blocks = if count(&row, "texts")? > 0 { count(&row, "blocks")? } else { 0 };
        match &content {
            Some(content) => {
                check_seal(
                    &row,
                    "seal",
                    &seal(&(key.to_string(), block), content)?,
                    format_args!("block {block} of the dataset {key}"),
                )?;
            }
            None if block < blocks => {
                return Err(StoreError::Damaged(format!("block {block} of {blocks} of the dataset {key} is missing")));
            }
            None => {}
        }
        Ok(content)
    }

    /// Deletes a dataset that no unfinished job uses. Returns true if there was such a dataset.
    pub async fn delete_dataset(&self, key: DatasetKey) -> Result<bool, StoreError> {
        self.delete(|in_pieces| self.try_to_delete_dataset(key, in_pieces)).await
    }

    async fn try_to_delete_dataset(&self, key: DatasetKey, in_pieces: bool) -> Result<bool, StoreError> {
        if in_pieces {
            self.delete_blocks_of_dataset(key).await?;
        }
        let statement = "DELETE FROM datasets WHERE dataset = $1 AND NOT EXISTS \
                         (SELECT 1 FROM jobs WHERE jobs.dataset = $1 AND status IN ('queued', 'running'))";
        let deleted = sqlx::query(statement).bind(key.to_string()).execute(&self.pool).await?.rows_affected();
        Ok(deleted > 0)
    }

    /// Deletes the blocks of a dataset that no unfinished job uses. It is incomplete from then on, so that nobody reads it.
    pub(super) async fn delete_blocks_of_dataset(&self, key: DatasetKey) -> Result<(), StoreError> {
        let statement = "UPDATE datasets SET state = 'uploading' WHERE dataset = $1 AND NOT EXISTS \
                         (SELECT 1 FROM jobs WHERE jobs.dataset = $1 AND status IN ('queued', 'running'))";
        sqlx::query(statement).bind(key.to_string()).execute(&self.pool).await?;
        let statement = "DELETE FROM samples WHERE dataset = (SELECT dataset FROM datasets WHERE dataset = $1 AND state = 'uploading') \
                         AND block = (SELECT MIN(block) FROM samples WHERE dataset = $1)";
        self.delete_blocks(statement, &key.to_string()).await
    }

    /// Deletes the texts that are not to be retained: those of datasets that an audit has used and no unfinished one needs.
    pub async fn drop_unretained(&self) -> Result<(), StoreError> {
        let drop = async || {
            let mut transaction = self.pool.begin().await?;
            let dropped = drop_unretained(&mut transaction).await?;
            transaction.commit().await?;
            Ok(dropped)
        };
        self.delete(|_| drop()).await.map(|_| ())
    }
}

/// Makes an id free for a dataset of the same owner, unless a sound dataset with its texts has it, whose key is returned.
async fn take_address(
    transaction: &mut Transaction<'_, Any>,
    key: DatasetKey,
    id: &str,
) -> Result<Option<DatasetKey>, StoreError> {
    let statement =
        "SELECT * FROM datasets WHERE address = $1 AND owner = (SELECT owner FROM datasets WHERE dataset = $2)";
    let known = query_all_columns(statement).bind(id).bind(key.to_string()).fetch_optional(&mut **transaction).await;
    let damage = match known.map_err(StoreError::from).and_then(|row| row.as_ref().map(dataset_row).transpose()) {
        Ok(None) => return Ok(None),
        Ok(Some(known)) if known.has_texts => return Ok(Some(known.key)),
        Ok(Some(_)) => None,
        Err(damage @ StoreError::Damaged(_)) => Some(damage),
        Err(error) => return Err(error),
    };
    let statement = "DELETE FROM datasets WHERE address = $1 AND owner = (SELECT owner FROM datasets WHERE dataset = $2) \
                     AND (texts = 0 OR NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.dataset = datasets.dataset \
                     AND status IN ('queued', 'running')))";
    let query = sqlx::query(statement).bind(id).bind(key.to_string());
    match (query.execute(&mut **transaction).await?.rows_affected(), damage) {
        (0, Some(damage)) => Err(damage),
        (_, damage) => {
            damage.inspect(|damage| tracing::error!(%damage, "an upload replaces a dataset"));
            Ok(None)
        }
    }
}

/// Does the same as [`Store::drop_unretained`] in a transaction. Returns true if there were such texts.
pub(super) async fn drop_unretained(transaction: &mut Transaction<'_, Any>) -> Result<bool, StoreError> {
    let statement = "UPDATE datasets SET texts = 0 WHERE retain = 0 AND texts = 1 AND state = 'ready' AND EXISTS \
                     (SELECT 1 FROM jobs WHERE jobs.dataset = datasets.dataset AND status = 'succeeded') AND NOT EXISTS \
                     (SELECT 1 FROM jobs WHERE jobs.dataset = datasets.dataset AND status IN ('queued', 'running'))";
    let dropped = sqlx::query(statement).execute(&mut **transaction).await?.rows_affected();
    if dropped > 0 {
        let statement = "DELETE FROM samples WHERE dataset IN (SELECT dataset FROM datasets WHERE texts = 0)";
        sqlx::query(statement).execute(&mut **transaction).await?;
    }
    Ok(dropped > 0)
}

pub(super) fn dataset_row(row: &AnyRow) -> Result<DatasetRow, StoreError> {
    let key = uuid(row, "dataset")?;
    check_seal(row, "seal", &dataset_seal(row)?, format_args!("the dataset {key}"))?;
    let id: Option<String> = row.try_get("address")?;
    Ok(DatasetRow {
        key,
        owner: row.try_get("owner")?,
        digest: id.clone(),
        id,
        description: row.try_get("description")?,
        retain: count(row, "retain")? > 0,
        has_texts: count(row, "texts")? > 0,
        created_at: time(row.try_get("created_at")?)?,
    })
}

/// Returns the seal of a complete dataset, over all but whether its texts are there.
fn dataset_seal(row: &AnyRow) -> Result<String, StoreError> {
    let text = |column| row.try_get::<String, _>(column);
    let number = |column| row.try_get::<i64, _>(column);
    let address: Option<String> = row.try_get("address")?;
    let numbers = [number("blocks")?, number("retain")?, number("created_at")?];
    seal(&(text("dataset")?, text("owner")?, address, text("state")?, numbers), text("description")?)
}
