//! The file of a store in SQLite, and those beside it.

use super::error::StoreError;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

/// Returns the path of a file whose name has `suffix` after that of `path`.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = OsString::from(path.as_os_str());
    name.push(suffix);
    name.into()
}

/// Creates the file, readable by its owner alone; SQLite gives the files beside it the same mode.
pub fn create(path: &Path) -> Result<(), StoreError> {
    private_file().open(path).map(|_| ()).map_err(|error| file_error(path, &error))
}

/// Returns the options to create a file that its owner alone may read.
pub fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes the file for this process, by a lock on a file beside it.
pub fn lock(path: &Path) -> Result<File, StoreError> {
    let in_use = || StoreError::InUse(path.display().to_string());
    open_locked(&beside(path, ".lock"))?.ok_or_else(in_use)
}

/// Opens or creates a file and locks it until it is closed; returns `None` if another process has locked it.
pub fn open_locked(path: &Path) -> Result<Option<File>, StoreError> {
    let file = private_file().open(path).map_err(|error| file_error(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(file_error(path, &error)),
    }
}

pub fn file_error(path: &Path, error: &std::io::Error) -> StoreError {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.exists());
    StoreError::Failed(match directory {
        Some(directory) => format!("the directory {} does not exist", directory.display()),
        None => format!("cannot write {}: {error}", path.display()),
    })
}
