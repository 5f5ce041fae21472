//! Connections to the database, and its tables.

use super::error::StoreError;
use super::schema::{Dialect, NEWEST, migrator};
use crate::config::StoreUrl;
use sqlx::any::AnyPoolOptions;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection, Executor};
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Connections to PostgreSQL; more queries than that wait for each other.
const POSTGRES_CONNECTIONS: u32 = 8;
/// Maximum time that a query waits for a connection, and SQLite for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// A database that ends with its only connection.
const IN_MEMORY: &str = "sqlite::memory:";

/// Commits are on disk when they return, and what is deleted is written over.
const SQLITE_SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                               PRAGMA secure_delete = ON; PRAGMA busy_timeout = 10000;";

/// Datasets and jobs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) pool: AnyPool,
    pub(super) dialect: Dialect,
    /// True if it outlives the process.
    durable: bool,
    /// Held as long as this process uses the file.
    _lock: Option<Arc<File>>,
}

impl Store {
    /// Opens the store and brings its tables up to date; none for one in memory.
    pub async fn open(url: Option<&StoreUrl>) -> Result<Self, StoreError> {
        Self::open_at(url, NEWEST).await
    }

    /// Checks that a store can be opened, and changes nothing of it. A file of SQLite that is not there yet needs its directory.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub async fn check(url: &StoreUrl) -> Result<(), StoreError> {
        let url = match url {
            StoreUrl::Sqlite(path) if !path.exists() => {
                let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
                let is_there = directory.is_none_or(Path::is_dir);
                return if is_there { Ok(()) } else { Err(file_error(path, &ErrorKind::NotFound.into())) };
            }
            StoreUrl::Sqlite(path) => sqlite_url(path),
            StoreUrl::Postgres(url) => url.clone(),
        };
        sqlx::any::install_default_drivers();
        let mut connection = AnyConnection::connect(&url).await.map_err(connect_error)?;
        connection.execute("SELECT 1").await?;
        Ok(connection.close().await?)
    }

    /// The same with the tables of a version.
    pub(super) async fn open_at(url: Option<&StoreUrl>, version: i64) -> Result<Self, StoreError> {
        let store = match url {
            None => Self::connect(IN_MEMORY, Dialect::Sqlite, None).await?,
            Some(StoreUrl::Sqlite(path)) => {
                let lock = lock(path)?;
                create(path)?;
                Self::connect(&sqlite_url(path), Dialect::Sqlite, Some(lock)).await?
            }
            Some(StoreUrl::Postgres(url)) => Self::connect(url, Dialect::Postgres, None).await?,
        };
        let store = Self { durable: url.is_some(), ..store };
        migrator(store.dialect, version).run(&store.pool).await?;
        if store.dialect == Dialect::Sqlite {
            store.expire_leases().await?;
        }
        Ok(store)
    }

    /// Bounds what a store in memory may take; one that outlives the process has the room of its disk. What would take more is refused as
    /// where a disk is full.
    pub async fn limit_memory(&self, bytes: u64) -> Result<(), StoreError> {
        if !self.durable {
            let size: i64 = sqlx::query_scalar("PRAGMA page_size").fetch_one(&self.pool).await?;
            let pages = bytes / u64::try_from(size).unwrap_or(1).max(1);
            sqlx::query(AssertSqlSafe(format!("PRAGMA max_page_count = {pages}"))).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Returns true if its content outlives the process.
    #[must_use]
    pub fn is_durable(&self) -> bool {
        self.durable
    }

    pub async fn close(&self) {
        self.pool.close().await;
    }

    async fn connect(url: &str, dialect: Dialect, lock: Option<File>) -> Result<Self, StoreError> {
        sqlx::any::install_default_drivers();
        // A pool would try again for a while, and not say what is wrong.
        let mut first = AnyConnection::connect(url).await.map_err(connect_error)?;
        first.execute(if dialect == Dialect::Sqlite { SQLITE_SETTINGS } else { "SELECT 1" }).await?;
        first.close().await?;
        let options = AnyPoolOptions::new().acquire_timeout(PATIENCE);
        let in_memory = url == IN_MEMORY;
        let pool = match dialect {
            // SQLite writes one transaction at a time, and each connection to memory would have its own database.
            Dialect::Sqlite => {
                options
                    .max_connections(1)
                    .min_connections(1)
                    .idle_timeout(None)
                    .max_lifetime(None)
                    // A test that is dropped in the middle takes its connection with it, and a database in memory with that.
                    .test_before_acquire(false)
                    // After a full disk SQLite has ended a transaction that its driver takes for open; what would be written within it
                    // would never be committed. A file is opened again.
                    .before_acquire(move |connection, _| {
                        let usable = in_memory || !connection.is_in_transaction();
                        Box::pin(async move { Ok(usable) })
                    })
                    .after_connect(|connection, _| {
                        Box::pin(async move { connection.execute(SQLITE_SETTINGS).await.map(|_| ()) })
                    })
                    .connect(url)
                    .await
            }
            Dialect::Postgres => options.max_connections(POSTGRES_CONNECTIONS).connect(url).await,
        };
        Ok(Self { pool: pool.map_err(connect_error)?, dialect, durable: false, _lock: lock.map(Arc::new) })
    }

    /// Writes over what was deleted, as far as the database leaves that to its clients.
    pub(super) async fn forget_deleted(&self) -> Result<(), StoreError> {
        if self.dialect == Dialect::Sqlite {
            sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&self.pool).await?;
        }
        Ok(())
    }
}

/// An error of connecting; that of a URL that cannot be parsed does not repeat it.
fn connect_error(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Configuration(_) => StoreError::Failed("`store.url` is not a URL of a database".to_owned()),
        error => error.into(),
    }
}

/// Any path as a URL: each byte but letters, digits and `/` is escaped.
fn sqlite_url(path: &Path) -> String {
    let path =
        percent_encoding::percent_encode(path.as_os_str().as_encoded_bytes(), percent_encoding::NON_ALPHANUMERIC);
    format!("sqlite://{path}?mode=rw")
}

/// Creates the file, readable by its owner alone; SQLite gives the files beside it the same mode.
fn create(path: &Path) -> Result<(), StoreError> {
    private_file().open(path).map(|_| ()).map_err(|error| file_error(path, &error))
}

/// Returns the options to create a file that its owner alone may read.
fn private_file() -> OpenOptions {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Takes the file for this process, by a lock on a file beside it.
fn lock(path: &Path) -> Result<File, StoreError> {
    let mut name = OsString::from(path.as_os_str());
    name.push(".lock");
    let name = PathBuf::from(name);
    let file = private_file().open(&name).map_err(|error| file_error(&name, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::InUse(path.display().to_string())),
        Err(TryLockError::Error(error)) => Err(file_error(&name, &error)),
    }
}

fn file_error(path: &Path, error: &std::io::Error) -> StoreError {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty() && !directory.exists());
    StoreError::Failed(match directory {
        Some(directory) => format!("the directory {} does not exist", directory.display()),
        None => format!("cannot write {}: {error}", path.display()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_without_a_directory_is_refused_by_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let refused = Store::open(Some(&StoreUrl::Sqlite(absent.join("store.db")))).await.unwrap_err().to_string();
        assert_eq!(refused, format!("the store failed: the directory {} does not exist", absent.display()));
        let checked = Store::check(&StoreUrl::Sqlite(absent.join("store.db"))).await.unwrap_err().to_string();
        assert_eq!(checked, refused);
        assert!(!absent.exists());
        let new = directory.path().join("new.db");
        Store::check(&StoreUrl::Sqlite(new.clone())).await.unwrap();
        assert!(!new.exists(), "a check creates nothing");
    }
}
