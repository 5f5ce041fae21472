//! Adapters that jobs made: their names, which are taken from the submission of the job on, and their files.

use super::error::{StoreError, uuid};
use super::open::Store;
use super::schema::Dialect;
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
    /// That of the job that made it.
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
    /// All adapters that are whole, oldest first.
    pub async fn adapters(&self) -> Result<Vec<AdapterRow>, StoreError> {
        let statement = "SELECT adapter, model, name, base_digest FROM adapters WHERE ready = 1 ORDER BY adapter";
        let rows = sqlx::query(statement).fetch_all(&self.pool).await?;
        let adapter = |row| {
            let name = AdapterName { model: Row::try_get(row, "model")?, name: Row::try_get(row, "name")? };
            Ok(AdapterRow { id: uuid(row, "adapter")?, name, base_digest: Row::try_get(row, "base_digest")? })
        };
        rows.iter().map(adapter).collect()
    }

    /// Returns the files of an adapter, with their names; empty if it is gone.
    pub async fn adapter_files(&self, id: Uuid) -> Result<Vec<(String, Vec<u8>)>, StoreError> {
        let statement = "SELECT file, content FROM adapter_blocks WHERE adapter = $1 ORDER BY file, block";
        let rows = sqlx::query(statement).bind(id.to_string()).fetch_all(&self.pool).await?;
        let mut files: Vec<(String, Vec<u8>)> = Vec::new();
        for row in &rows {
            let (name, content): (String, Vec<u8>) = (row.try_get("file")?, row.try_get("content")?);
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
        Ok(query.fetch_optional(&self.pool).await?.is_some())
    }

    /// Deletes an adapter that is whole; whether there was one.
    pub async fn delete_adapter(&self, name: &AdapterName) -> Result<bool, StoreError> {
        let statement = "DELETE FROM adapters WHERE model = $1 AND name = $2 AND ready = 1";
        let query = sqlx::query(statement).bind(&*name.model).bind(&*name.name);
        let deleted = query.execute(&self.pool).await?.rows_affected() > 0;
        if deleted {
            self.forget_deleted().await?;
        }
        Ok(deleted)
    }
}

/// Takes a name for the job; whether nobody else has it. A job that ended without an adapter has its name no more.
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
    let statement = "UPDATE adapters SET ready = 1, base_digest = $2, created_at = {now} WHERE adapter = $1";
    let query = sqlx::query(dialect.sql(statement)).bind(job.to_string()).bind(&*adapter.base_digest);
    if query.execute(&mut **transaction).await?.rows_affected() == 0 {
        return Err(StoreError::Damaged(format!("the adapter of job {job} has no name")));
    }
    for (name, content) in &adapter.files {
        for (block, content) in (0_i64..).zip(content.chunks(BLOCK)) {
            let statement = "INSERT INTO adapter_blocks (adapter, file, block, content) VALUES ($1, $2, $3, $4)";
            let query = sqlx::query(statement).bind(job.to_string()).bind(&**name).bind(block).bind(content.to_vec());
            query.execute(&mut **transaction).await?;
        }
    }
    Ok(())
}
