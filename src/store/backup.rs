//! Backups of a store in SQLite, and their way back.

use super::check::StoreCheck;
use super::error::StoreError;
use super::files::{beside, file_error, lock, private_file};
use super::open::Store;
use crate::config::StoreUrl;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Copies a store, which may be in use, into a new file that only its owner may read. The copy is checked, and gets its name only if it
/// has no faults.
///
/// # Errors
/// [`StoreError::Refused`] where there is such a file already, or the store is PostgreSQL.
pub async fn back_up(url: &StoreUrl, target: &Path) -> Result<StoreCheck, StoreError> {
    let StoreUrl::Sqlite(_) = url else {
        let line = format!("pg_dump --format=custom --file={} \"$STORE_URL\"", target.display());
        return Err(StoreError::Refused(format!("a store in PostgreSQL is saved by its own tools: {line}")));
    };
    let partial = PartialStore::create(target)?;
    let store = Store::open_to_read(url).await?;
    let path = partial.0.to_str().ok_or_else(|| StoreError::Refused("the path of a backup is UTF-8".to_owned()))?;
    let copied = sqlx::query("VACUUM INTO $1").bind(path).execute(&store.readers).await;
    store.close().await;
    copied?;
    partial.put_in_place(target).await
}

/// Puts a copy of a backup in the place of a store that is not there. The copy is checked first, and moved only if it has no faults.
///
/// # Errors
/// [`StoreError::Refused`] where there is a store already, [`StoreError::InUse`] where a process has it, and
/// [`StoreError::OtherVersion`] for a backup of a newer version.
pub async fn restore(url: &StoreUrl, backup: &Path) -> Result<StoreCheck, StoreError> {
    let StoreUrl::Sqlite(target) = url else {
        let line = format!("pg_restore --clean --if-exists --dbname=\"$STORE_URL\" {}", backup.display());
        return Err(StoreError::Refused(format!("a store in PostgreSQL is restored by its own tools: {line}")));
    };
    let _lock = lock(target)?;
    // What is left of an earlier store beside the file would be taken for a part of this one.
    for file in ["", "-wal", "-journal"].map(|suffix| beside(target, suffix)) {
        if file.exists() {
            return Err(StoreError::Refused(format!("{} is there; move it away first", file.display())));
        }
    }
    if beside(backup, "-wal").exists() {
        let reason = "is a store that is open, or was not closed; `pdr-audit store backup` copies it";
        return Err(StoreError::Refused(format!("{} {reason}", backup.display())));
    }
    let partial = PartialStore::create(target)?;
    let cannot_copy = |error| StoreError::Refused(format!("cannot copy {}: {error}", backup.display()));
    let mut from = File::open(backup).map_err(cannot_copy)?;
    let mut into = private_file().open(&partial.0).map_err(|error| file_error(&partial.0, &error))?;
    let copied = tokio::task::spawn_blocking(move || std::io::copy(&mut from, &mut into)).await;
    copied.map_err(|error| StoreError::Failed(error.to_string()))?.map_err(cannot_copy)?;
    partial.put_in_place(target).await
}

/// A file of SQLite that is written beside its target, and deleted at the end; by then it may have the name of the target as well.
struct PartialStore(PathBuf);

impl PartialStore {
    fn create(target: &Path) -> Result<Self, StoreError> {
        if target.exists() {
            return Err(exists(target));
        }
        let partial = Self(beside(target, &format!(".{}.partial", Uuid::new_v4().simple())));
        private_file().open(&partial.0).map_err(|error| file_error(target, &error))?;
        Ok(partial)
    }

    /// Checks the file and, if it has no faults, gives it the name of the target, which nothing may have by then.
    async fn put_in_place(self, target: &Path) -> Result<StoreCheck, StoreError> {
        let store = Store::open_to_read(&StoreUrl::Sqlite(self.0.clone())).await?;
        let check = store.verify().await;
        store.close().await;
        let check = check?;
        if check.faults.is_empty() {
            let synced = File::open(&self.0).and_then(|file| file.sync_all());
            synced.and_then(|()| fs::hard_link(&self.0, target)).map_err(|error| match error.kind() {
                std::io::ErrorKind::AlreadyExists => exists(target),
                _ => file_error(target, &error),
            })?;
            // The name is on disk only with its directory.
            let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all()).ok();
        }
        Ok(check)
    }
}

impl Drop for PartialStore {
    fn drop(&mut self) {
        for suffix in ["", "-wal", "-shm", "-journal"] {
            let _ = fs::remove_file(beside(&self.0, suffix));
        }
    }
}

fn exists(path: &Path) -> StoreError {
    StoreError::Refused(format!("{} is there already", path.display()))
}
