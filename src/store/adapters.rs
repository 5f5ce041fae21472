//! Adapters that jobs made: their names, which are taken from the submission of the job on, and their files.

use super::error::{StoreError, uuid};
use super::open::Store;
use super::schema::{Dialect, query_all_columns};
use super::seal::{check_seal, seal};
use sqlx::any::AnyRow;
use sqlx::{Any, Row, Transaction};
use uuid::Uuid;

/// Maximum number of bytes of a block.
const BLOCK: usize = 1 << 20;

/// The name of an adapter among those of its model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterName {
    pub model: String,
    pub name: String,
}

/// An adapter that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterRow {
    /// The id of the job that made it.
    pub id: Uuid,
    pub name: AdapterName,
    /// The digest of the model that it was tuned on.
    pub base_digest: String,
}

/// Content of an adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdapterFiles {
    /// The digest of the model that it was tuned on.
    pub base_digest: String,
    /// Names and contents.
    pub files: Vec<(String, Vec<u8>)>,
}

impl Store {
    /// Returns the adapters that are whole and not damaged, oldest first.
    pub async fn adapters(&self) -> Result<Vec<AdapterRow>, StoreError> {
        let query = query_all_columns("SELECT * FROM adapters WHERE ready = 1 ORDER BY adapter");
        self.sound_rows(query, adapter_row).await
    }

    /// Returns true if there is a whole adapter of this name, which may be damaged.
    pub async fn has_adapter(&self, name: &AdapterName) -> Result<bool, StoreError> {
        let statement = "SELECT adapter FROM adapters WHERE model = $1 AND name = $2 AND ready = 1";
        let query = sqlx::query(statement).bind(&*name.model).bind(&*name.name);
        Ok(query.fetch_optional(&self.readers).await?.is_some())
    }

    /// Returns the files of an adapter, with their names; empty if it is gone.
    pub async fn adapter_files(&self, id: Uuid) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let statement = "SELECT file, block, content, blocks, adapter_blocks.seal AS seal FROM adapters JOIN adapter_blocks \
                         ON adapter_blocks.adapter = adapters.adapter WHERE adapters.adapter = $1 ORDER BY file, block";
        let rows = sqlx::query(statement).bind(id.to_string()).fetch_all(&self.readers).await?;
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for row in &rows {
            let (name, content): (String, Vec<u8>) = (row.try_get("file")?, row.try_get("content")?);
            let (block, blocks): (i64, Option<i64>) = (row.try_get("block")?, row.try_get("blocks")?);
            let subject = format_args!("block {block} of the file {name:?} of the adapter {id}");
            check_seal(row, "seal", &block_seal(id, &name, block, blocks, &content)?, subject)?;
            if blocks.is_some_and(|blocks| usize::try_from(blocks) != Ok(rows.len())) {
                return Err(StoreError::Damaged(format!("the adapter {id} has {} of its blocks", rows.len())));
            }
            match files.last_mut() {
                Some((last, whole)) if *last == name => whole.extend(content),
                _ => files.push((name, content)),
            }
        }
        Ok(files)
    }

    /// Returns true if an unfinished job names the model of this id, or its request does.
    pub async fn is_named(&self, model: &str) -> Result<bool, StoreError> {
        let statement = "SELECT id FROM jobs WHERE status IN ('queued', 'running') \
                         AND (model = $1 OR {position}(request, $2) > 0) LIMIT 1";
        // No id has a character that JSON writes otherwise.
        let quoted = format!("\"{model}\"");
        let query = sqlx::query(self.dialect.sql(statement)).bind(model).bind(quoted);
        Ok(query.fetch_optional(&self.readers).await?.is_some())
    }

    /// Deletes an adapter that is whole. Returns true if there was such an adapter.
    pub async fn delete_adapter(&self, name: &AdapterName) -> Result<bool, StoreError> {
        let delete = async || {
            let statement = "DELETE FROM adapters WHERE model = $1 AND name = $2 AND ready = 1";
            let query = sqlx::query(statement).bind(&*name.model).bind(&*name.name);
            Ok(query.execute(&self.pool).await?.rows_affected() > 0)
        };
        self.delete(|_| delete()).await
    }
}

/// Takes a name for the job, and returns false if another has it. A job that ended without an adapter has its name no more.
pub(super) async fn claim_name(
    transaction: &mut Transaction<'_, Any>,
    name: &AdapterName,
    job: Uuid,
) -> Result<bool, StoreError> {
    let statement = "DELETE FROM adapters WHERE ready = 0 AND adapter NOT IN \
                     (SELECT id FROM jobs WHERE status IN ('queued', 'running'))";
    sqlx::query(statement).execute(&mut **transaction).await?;
    let statement = "INSERT INTO adapters (adapter, model, name, base_digest, ready, created_at) \
                     VALUES ($1, $2, $3, '', 0, 0) ON CONFLICT DO NOTHING";
    let query = sqlx::query(statement).bind(job.to_string()).bind(&*name.model).bind(&*name.name);
    Ok(query.execute(&mut **transaction).await?.rows_affected() > 0)
}

/// Writes the adapter of a job, whose name was taken when that was submitted.
pub(super) async fn write_adapter(
    transaction: &mut Transaction<'_, Any>,
    job: Uuid,
    adapter: &AdapterFiles,
    dialect: Dialect,
) -> Result<(), StoreError> {
    let blocks = adapter.files.iter().map(|(_, content)| content.len().div_ceil(BLOCK)).sum::<usize>();
    let blocks = i64::try_from(blocks).ok();
    let statement = "UPDATE adapters SET ready = 1, base_digest = $2, blocks = $3, created_at = {now} WHERE adapter = $1 RETURNING *";
    let query = query_all_columns(dialect.sql(statement)).bind(job.to_string());
    let query = query.bind(&*adapter.base_digest).bind(blocks);
    let Some(row) = query.fetch_all(&mut **transaction).await?.pop() else {
        return Err(StoreError::Damaged(format!("the adapter of job {job} has no name")));
    };
    let query = sqlx::query("UPDATE adapters SET seal = $2 WHERE adapter = $1").bind(job.to_string());
    query.bind(adapter_seal(&row)?).execute(&mut **transaction).await?;
    for (name, content) in &adapter.files {
        for (block, content) in (0_i64..).zip(content.chunks(BLOCK)) {
            sqlx::query("INSERT INTO adapter_blocks (adapter, file, block, content, seal) VALUES ($1, $2, $3, $4, $5)")
                .bind(job.to_string())
                .bind(&**name)
                .bind(block)
                .bind(content.to_vec())
                .bind(block_seal(job, name, block, blocks, content)?)
                .execute(&mut **transaction)
                .await?;
        }
    }
    Ok(())
}

/// Reads an adapter; the tables must be those of now.
pub(super) fn adapter_row(row: &AnyRow) -> Result<AdapterRow, StoreError> {
    let id = uuid(row, "adapter")?;
    check_seal(row, "seal", &adapter_seal(row)?, format_args!("the adapter {id}"))?;
    let name = AdapterName { model: row.try_get("model")?, name: row.try_get("name")? };
    Ok(AdapterRow { id, name, base_digest: row.try_get("base_digest")? })
}

fn adapter_seal(row: &AnyRow) -> Result<String, StoreError> {
    let text = |column| row.try_get::<String, _>(column);
    let numbers: (i64, Option<i64>) = (row.try_get("ready")?, row.try_get("blocks")?);
    seal(&(text("adapter")?, text("model")?, text("name")?, numbers), text("base_digest")?)
}

fn block_seal(
    adapter: Uuid,
    file: &str,
    block: i64,
    blocks: Option<i64>,
    content: &[u8],
) -> Result<String, StoreError> {
    seal(&(adapter.to_string(), file, block, blocks), content)
}
