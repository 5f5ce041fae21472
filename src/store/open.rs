//! Connections to the database, and its tables.

use super::error::StoreError;
use super::files::{beside, create, file_error, lock};
use super::reserve::Reserve;
use super::schema::{Dialect, NEWEST, OLDEST, migrator};
use crate::config::StoreUrl;
use sqlx::any::AnyPoolOptions;
use sqlx::{AnyConnection, AnyPool, AssertSqlSafe, Connection, Executor, Row};
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Connections to PostgreSQL; more queries than that wait for each other.
const POSTGRES_CONNECTIONS: u32 = 8;
/// Connections that read a file of SQLite.
const READERS: u32 = 4;
/// Maximum time that a query waits for a connection, and SQLite for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// A database that ends with its only connection.
const IN_MEMORY: &str = "sqlite::memory:";

/// Commits are on disk when they return, and what is deleted is written over.
const SQLITE_SETTINGS: &str = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON; \
                               PRAGMA secure_delete = ON; PRAGMA busy_timeout = 10000;";

/// Settings of connections that read a file while another one writes.
const READER_SETTINGS: &str = "PRAGMA query_only = ON; PRAGMA busy_timeout = 10000;";

/// Settings of the connection that empties the log of writes, for which everybody who writes waits.
const EMPTIER_SETTINGS: &str = "PRAGMA busy_timeout = 200;";

/// Datasets and jobs; cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    pub(super) pool: AnyPool,
    /// Connections for single statements that only read. Those of a file of SQLite do not wait for the one that writes; each statement
    /// sees all that was committed before it.
    pub(super) readers: AnyPool,
    pub(super) dialect: Dialect,
    /// True if it outlives the process.
    durable: bool,
    /// A connection that empties the log of writes of a file.
    pub(super) log_emptier: Option<AnyPool>,
    /// True if the log of writes still has something that was deleted.
    pub(super) is_log_kept: Arc<AtomicBool>,
    /// Room for deletions on the disk of a file.
    pub(super) reserve: Option<Reserve>,
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
    /// [`StoreError`] if it cannot be opened.
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
        let mut connection = first_connection(&url).await?;
        connection.execute("SELECT 1").await?;
        Ok(connection.close().await?)
    }

    /// The same with the tables of a version.
    pub(super) async fn open_at(url: Option<&StoreUrl>, version: i64) -> Result<Self, StoreError> {
        let store = match url {
            None => Self::connect(IN_MEMORY, Dialect::Sqlite).await?,
            Some(StoreUrl::Sqlite(path)) => return Self::open_file(path, version).await,
            Some(StoreUrl::Postgres(url)) => Self { durable: true, ..Self::connect(url, Dialect::Postgres).await? },
        };
        store.begin(version).await?;
        Ok(store)
    }

    async fn open_file(path: &Path, version: i64) -> Result<Self, StoreError> {
        let (lock, reserve) = (Arc::new(lock(path)?), Reserve::new(path));
        create(path)?;
        let open = async || {
            let url = sqlite_url(path);
            let store = Self::connect(&url, Dialect::Sqlite).await?;
            let readers = pool_options(READERS, READER_SETTINGS).connect_lazy(&url)?;
            let log_emptier = Some(pool_options(1, EMPTIER_SETTINGS).connect_lazy(&url)?);
            // An earlier process may have been ended before it emptied the log.
            let store = Self { readers, log_emptier, is_log_kept: Arc::new(true.into()), durable: true, ..store };
            if let Err(error) = store.begin(version).await {
                store.close().await;
                return Err(error);
            }
            Ok(store)
        };
        let store = match open().await {
            // To open a file is to write beside it; a disk that is full may also say so by an error of its own.
            Err(StoreError::Full | StoreError::Unavailable(_)) if reserve.release() => {
                let opened = open().await;
                reserve.hold().await;
                opened?
            }
            opened => opened?,
        };
        reserve.hold().await;
        Ok(Self { reserve: Some(reserve), _lock: Some(lock), ..store })
    }

    /// Brings the tables up to a version, and ends what a process before this one left.
    async fn begin(&self, version: i64) -> Result<(), StoreError> {
        migrator(self.dialect, version).run(&self.pool).await?;
        match self.dialect {
            Dialect::Sqlite => self.end_earlier_process().await,
            Dialect::Postgres => Ok(()),
        }
    }

    /// Opens a store to read it, whatever uses it meanwhile; none of its files changes.
    ///
    /// # Errors
    /// [`StoreError`] if it cannot be opened; [`StoreError::OtherVersion`] for one of a newer version, and [`StoreError::Refused`] for one
    /// of the first versions.
    pub async fn open_to_read(url: &StoreUrl) -> Result<Self, StoreError> {
        let (url, dialect, settings) = match url {
            // Without a log of writes beside it nothing has it open, and it is read without any other file.
            StoreUrl::Sqlite(path) if !beside(path, "-wal").exists() => {
                (format!("{}&immutable=1", file_url(path, "ro")), Dialect::Sqlite, "PRAGMA busy_timeout = 10000")
            }
            StoreUrl::Sqlite(path) => (file_url(path, "ro"), Dialect::Sqlite, "PRAGMA busy_timeout = 10000"),
            StoreUrl::Postgres(url) => (url.clone(), Dialect::Postgres, "SET default_transaction_read_only = on"),
        };
        first_connection(&url).await?.close().await?;
        // It is kept, so that a transaction lasts.
        let options = pool_options(1, settings).idle_timeout(None).max_lifetime(None);
        let pool = options.connect(&url).await.map_err(connect_error)?;
        let store = Self { durable: true, ..Self::new(pool, dialect) };
        match store.version().await? {
            newer if newer > NEWEST => Err(StoreError::OtherVersion(newer)),
            older if older < OLDEST => Err(StoreError::Refused(format!(
                "the store has tables of version {older}, which are read only after a migration: start the service on it once"
            ))),
            _ => Ok(store),
        }
    }

    /// Returns the version of the tables.
    pub(super) async fn version(&self) -> Result<i64, StoreError> {
        let statement = "SELECT CAST(MAX(version) AS BIGINT) AS version FROM _sqlx_migrations";
        let version: Option<i64> = sqlx::query_scalar(statement).fetch_one(&self.readers).await?;
        version.ok_or_else(|| StoreError::Damaged("no migration is noted".to_owned()))
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
        self.readers.close().await;
        if let Some(emptier) = &self.log_emptier {
            emptier.close().await;
        }
        self.pool.close().await;
    }

    async fn connect(url: &str, dialect: Dialect) -> Result<Self, StoreError> {
        let mut first = first_connection(url).await?;
        first.execute(if dialect == Dialect::Sqlite { SQLITE_SETTINGS } else { "SELECT 1" }).await?;
        first.close().await?;
        let in_memory = url == IN_MEMORY;
        let pool = match dialect {
            // SQLite writes one transaction at a time, and each connection to memory would have its own database.
            Dialect::Sqlite => {
                pool_options(1, SQLITE_SETTINGS)
                    .min_connections(1)
                    .idle_timeout(None)
                    .max_lifetime(None)
                    // After a full disk SQLite has ended a transaction that its driver takes for open; what would be written within it
                    // would never be committed. A file is opened again.
                    .before_acquire(move |connection, _| {
                        let usable = in_memory || !connection.is_in_transaction();
                        Box::pin(async move { Ok(usable) })
                    })
                    .connect(url)
                    .await
            }
            Dialect::Postgres => {
                pool_options(POSTGRES_CONNECTIONS, "SELECT 1").test_before_acquire(true).connect(url).await
            }
        };
        let pool = pool.map_err(connect_error)?;
        Ok(Self::new(pool, dialect))
    }

    /// Makes a store whose connections all read and write.
    fn new(pool: AnyPool, dialect: Dialect) -> Self {
        let (readers, is_log_kept) = (pool.clone(), Arc::default());
        Self { pool, readers, dialect, durable: false, log_emptier: None, is_log_kept, reserve: None, _lock: None }
    }
}

/// Returns the options of connections that begin with these statements.
fn pool_options(connections: u32, settings: &'static str) -> AnyPoolOptions {
    let options = AnyPoolOptions::new().acquire_timeout(PATIENCE).max_connections(connections);
    // A test that is dropped in the middle takes its connection with it, and a database in memory with that.
    options
        .test_before_acquire(false)
        .after_connect(move |connection, _| Box::pin(async move { connection.execute(settings).await.map(|_| ()) }))
}

/// Opens a connection before a pool does, which would try again for a while and not say what is wrong. The schema of a file is read as
/// bytes: the driver panics where it is not UTF-8, and who waits for its answer waits for ever.
async fn first_connection(url: &str) -> Result<AnyConnection, StoreError> {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(url).await.map_err(connect_error)?;
    if connection.backend_name() == "SQLite" {
        let statement = "SELECT CAST(name || tbl_name || COALESCE(sql, '') AS BLOB) AS entry FROM sqlite_master";
        for row in connection.fetch_all(statement).await? {
            let entry: Vec<u8> = row.try_get("entry")?;
            str::from_utf8(&entry).map_err(|error| StoreError::Damaged(format!("the schema of the file: {error}")))?;
        }
    }
    Ok(connection)
}

/// An error of connecting; that of a URL that cannot be parsed does not repeat it.
fn connect_error(error: sqlx::Error) -> StoreError {
    match error {
        sqlx::Error::Configuration(_) => StoreError::Failed("`store.url` is not a URL of a database".to_owned()),
        error => error.into(),
    }
}

fn sqlite_url(path: &Path) -> String {
    file_url(path, "rw")
}

/// Returns any path as a URL: each byte but letters, digits and `/` is escaped.
fn file_url(path: &Path, mode: &str) -> String {
    let path =
        percent_encoding::percent_encode(path.as_os_str().as_encoded_bytes(), percent_encoding::NON_ALPHANUMERIC);
    format!("sqlite://{path}?mode={mode}")
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
