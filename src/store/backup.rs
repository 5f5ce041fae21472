//! Backups of a store in SQLite, and their way back.

use super::check::StoreCheck;
use super::error::StoreError;
use super::files::{beside, file_error, lock, open_locked};
use super::open::Store;
use crate::config::StoreUrl;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Endings of the files that SQLite keeps beside one of its own.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

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
    let path = partial.path.to_str().ok_or_else(|| StoreError::Refused("the path of a backup is UTF-8".to_owned()))?;
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
    // Files that an earlier store left beside this one would be taken for parts of it.
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
    let mut into = partial.file.try_clone().map_err(|error| file_error(&partial.path, &error))?;
    let copied = tokio::task::spawn_blocking(move || std::io::copy(&mut from, &mut into)).await;
    copied.map_err(|error| StoreError::Failed(error.to_string()))?.map_err(cannot_copy)?;
    partial.put_in_place(target).await
}

/// A file of SQLite that is written beside its target, and deleted at the end; by then it may have the name of the target as well.
struct PartialStore {
    path: PathBuf,
    /// Locked, so that no other process writes it.
    file: File,
}

impl PartialStore {
    /// Creates the file, or takes one that a process left when it was killed.
    fn create(target: &Path) -> Result<Self, StoreError> {
        let path = beside(target, ".partial");
        let in_use = || StoreError::Refused(format!("another process writes {}", path.display()));
        let file = open_locked(&path)?.ok_or_else(in_use)?;
        let partial = Self { path, file };
        // The process that had the lock before may have put the file in place.
        if target.exists() {
            return Err(exists(target));
        }
        partial.remove(&BESIDE);
        partial.file.set_len(0).map_err(|error| file_error(target, &error))?;
        Ok(partial)
    }

    /// Checks the file and, if it has no faults, gives it the name of the target, which nothing may have by then.
    async fn put_in_place(self, target: &Path) -> Result<StoreCheck, StoreError> {
        let store = Store::open_to_read(&StoreUrl::Sqlite(self.path.clone())).await?;
        let check = store.verify().await;
        store.close().await;
        let check = check?;
        if check.faults.is_empty() {
            let named = match self.file.sync_all().and_then(|()| fs::hard_link(&self.path, target)) {
                // Some file systems have no links.
                Err(error) if error.kind() != ErrorKind::AlreadyExists && !target.exists() => {
                    fs::rename(&self.path, target)
                }
                named => named,
            };
            named.map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => exists(target),
                _ => file_error(target, &error),
            })?;
            // The name is on disk only with its directory.
            let directory = target.parent().filter(|directory| !directory.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new("."))).and_then(|directory| directory.sync_all()).ok();
        }
        Ok(check)
    }

    fn remove(&self, suffixes: &[&str]) {
        for suffix in suffixes {
            let _ = fs::remove_file(beside(&self.path, suffix));
        }
    }
}

impl Drop for PartialStore {
    fn drop(&mut self) {
        self.remove(&BESIDE);
        self.remove(&[""]);
    }
}

fn exists(path: &Path) -> StoreError {
    StoreError::Refused(format!("{} is there already", path.display()))
}
