//! The two files of the cache on disk, and all that is known of redb.
//!
//! Two generations bound it: statistics go to the young file, and when that holds half of what is allowed it becomes the
//! old one and the old one is deleted, unless unfinished work needs it. So the oldest go first, and their room is really given back.
//!
//! Invariants:
//!
//! - a commit is whole or not there, after `kill -9` too; redb says which without reading the whole file;
//! - a file that cannot be understood is deleted: all of it can be computed again, and aside it would still take room;
//! - whatever a damaged file makes redb do, a panic too, is a [`DiskFault`].

use super::record::{RecordKey, STAMP};
use redb::{Builder, Database, Error, ReadOnlyTable, ReadableDatabase, TableDefinition, TableError, TableHandle};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, Metadata, TryLockError};
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Instant;

const YOUNG: &str = "statistics.redb";
const OLD: &str = "statistics.old.redb";
const LOCK: &str = "lock";

const META: TableDefinition<&str, &str> = TableDefinition::new("meta");
const STATISTICS: TableDefinition<&RecordKey, &[u8]> = TableDefinition::new("statistics");

/// Size of redb's page cache of a file; the operating system caches the rest.
const PAGE_CACHE_BYTES: usize = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub(super) enum DiskFault {
    /// They are not what was written, and will not be.
    #[error("{0}")]
    Damaged(String),
    /// The operating system says no, as on a full disk; it may say yes later.
    #[error("{0}")]
    Unavailable(String),
}

/// Values by key, to be written at once.
pub(super) type Batch = BTreeMap<RecordKey, Vec<u8>>;

/// The directory, which belongs to this process alone until this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Locked; the operating system unlocks it however the process ends.
    lock: File,
}

pub(super) struct Files {
    young: Database,
    old: Option<Database>,
}

/// The folder until the cache is closed for good, and its files, or since when they pause.
pub(super) struct Storage {
    pub(super) folder: Option<Folder>,
    pub(super) files: Result<Files, Instant>,
}

/// The files as they were at one moment, for several look-ups.
pub(super) struct Snapshot {
    tables: Vec<ReadOnlyTable<&'static RecordKey, &'static [u8]>>,
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child process that was forked a moment ago and has not begun to run.
        let _ = self.lock.unlock();
    }
}

impl Folder {
    /// Makes the directory where it is missing, and takes it for this process.
    pub(super) fn take(path: &Path) -> Result<Self, DiskFault> {
        let mut directory = DirBuilder::new();
        // Numbers say something of the texts.
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut directory, 0o700);
        directory.recursive(true).create(path)?;
        let lock = File::options().write(true).create(true).truncate(false).open(path.join(LOCK))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), lock }),
            Err(TryLockError::WouldBlock) => Err(DiskFault::Unavailable("another process uses it".to_owned())),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }

    /// Opens the files, each anew where it is missing or cannot be understood.
    pub(super) fn open(&self) -> Result<Files, DiskFault> {
        let old = if self.old().try_exists()? { Some(open_or_begin_anew(&self.old())?) } else { None };
        Ok(Files { young: open_or_begin_anew(&self.young())?, old })
    }

    /// Deletes the files. None may be open.
    pub(super) fn clear(&self) -> Result<(), DiskFault> {
        for path in [self.young(), self.old()] {
            remove(&path)?;
        }
        Ok(())
    }

    /// Makes the young file the old one, and begins a new one.
    pub(super) fn turn(&self, files: &mut Files) -> Result<(), DiskFault> {
        close(files.old.take());
        std::fs::rename(self.young(), self.old())?;
        let young = open_or_begin_anew(&self.young())?;
        files.old = Some(std::mem::replace(&mut files.young, young));
        Ok(())
    }

    /// Returns the disk space in bytes of the young file, and of both files.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let bytes = |path| std::fs::metadata(path).map_or(0, |metadata| disk_bytes(&metadata));
        let young = bytes(self.young());
        (young, young + bytes(self.old()))
    }

    fn young(&self) -> PathBuf {
        self.path.join(YOUNG)
    }

    fn old(&self) -> PathBuf {
        self.path.join(OLD)
    }
}

impl Storage {
    /// Closes the files.
    pub(super) fn pause(&mut self) {
        if let Ok(files) = std::mem::replace(&mut self.files, Err(Instant::now())) {
            files.close();
        }
    }

    /// Closes the files and opens them again, unless the cache is closed for good; `anew` deletes them first.
    pub(super) fn reopen(&mut self, anew: bool) -> Result<(), DiskFault> {
        self.pause();
        let Some(folder) = &self.folder else { return Ok(()) };
        if anew {
            folder.clear()?;
        }
        let files = folder.open()?;
        self.files = Ok(files);
        Ok(())
    }
}

impl Files {
    pub(super) fn close(self) {
        close(Some(self.young));
        close(self.old);
    }

    pub(super) fn has_old(&self) -> bool {
        self.old.is_some()
    }

    pub(super) fn put(&self, batch: &Batch) -> Result<(), DiskFault> {
        guarded(|| {
            let mut transaction = self.young.begin_write()?;
            // Else opening the file after a crash would read all of it.
            transaction.set_quick_repair(true);
            {
                let mut table = transaction.open_table(STATISTICS)?;
                for (key, value) in batch {
                    table.insert(key, value.as_slice())?;
                }
            }
            Ok(transaction.commit()?)
        })
    }

    pub(super) fn snapshot(&self) -> Result<Snapshot, DiskFault> {
        let files = [Some(&self.young), self.old.as_ref()].into_iter().flatten();
        guarded(|| {
            let tables = files.map(|file| Ok(file.begin_read()?.open_table(STATISTICS)?));
            Ok(Snapshot { tables: tables.collect::<Result<_, Error>>()? })
        })
    }
}

impl Snapshot {
    /// Returns a value, and true with it if it is in the old file.
    pub(super) fn get(&self, key: &RecordKey) -> Result<Option<(Vec<u8>, bool)>, DiskFault> {
        guarded(|| {
            for (age, table) in self.tables.iter().enumerate() {
                if let Some(value) = table.get(key)? {
                    return Ok(Some((value.value().to_vec(), age > 0)));
                }
            }
            Ok(None)
        })
    }
}

/// Opens a file; one that is damaged or of another version is deleted first.
fn open_or_begin_anew(path: &Path) -> Result<Database, DiskFault> {
    match open(path) {
        Err(DiskFault::Damaged(reason)) => {
            tracing::warn!(file = %path.display(), reason, "the cache on disk is dropped and begun anew");
            remove(path)?;
            open(path)
        }
        opened => opened,
    }
}

/// Opens a file, makes it where it is missing, and checks that it is one of ours.
fn open(path: &Path) -> Result<Database, DiskFault> {
    guarded(|| {
        let database = Builder::new().set_cache_size(PAGE_CACHE_BYTES).create(path)?;
        let transaction = database.begin_read()?;
        match transaction.open_table(META) {
            Ok(meta) => check(meta.get("stamp")?.as_ref().map(|stamp| stamp.value()))?,
            Err(TableError::TableDoesNotExist(_)) => {
                let foreign = transaction.list_tables()?.next().map(|table| table.name().to_owned());
                foreign.map_or(Ok(()), |table| check(Some(&table)))?;
                begin(&database)?;
            }
            Err(error) => return Err(error.into()),
        }
        drop(transaction);
        Ok(database)
    })
}

/// Closes a file. What redb cannot do then it does when the file is opened again.
fn close(file: Option<Database>) {
    let _ = catch_unwind(AssertUnwindSafe(|| drop(file)));
}

fn check(found: Option<&str>) -> Result<(), Error> {
    match found {
        Some(stamp) if stamp == *STAMP => Ok(()),
        found => Err(Error::Corrupted(format!("it holds {:?}, not {:?}", found.unwrap_or_default(), *STAMP))),
    }
}

fn begin(database: &Database) -> Result<(), Error> {
    let mut transaction = database.begin_write()?;
    transaction.set_quick_repair(true);
    transaction.open_table(META)?.insert("stamp", STAMP.as_str())?;
    transaction.open_table(STATISTICS)?;
    Ok(transaction.commit()?)
}

fn remove(path: &Path) -> Result<(), DiskFault> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Calls redb, and turns its panics into faults.
fn guarded<T>(act: impl FnOnce() -> Result<T, Error>) -> Result<T, DiskFault> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => result.map_err(DiskFault::from),
        Err(_) => Err(DiskFault::Damaged("reading it panicked".to_owned())),
    }
}

impl From<Error> for DiskFault {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error.into(),
            Error::PreviousIo | Error::DatabaseAlreadyOpen | Error::DatabaseClosed => {
                Self::Unavailable(error.to_string())
            }
            // Its words alone: a file of another version is no "corrupted DB".
            Error::Corrupted(reason) => Self::Damaged(reason),
            error => Self::Damaged(error.to_string()),
        }
    }
}

impl From<std::io::Error> for DiskFault {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            // So redb calls a file that is none of its own, and one that is cut short.
            ErrorKind::InvalidData | ErrorKind::UnexpectedEof => Self::Damaged(error.to_string()),
            _ => Self::Unavailable(error.to_string()),
        }
    }
}

/// Returns the disk space of a file. Its length may be twice that, since redb grows it ahead and leaves holes.
#[cfg(unix)]
fn disk_bytes(metadata: &Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    metadata.blocks().saturating_mul(512)
}

#[cfg(not(unix))]
fn disk_bytes(metadata: &Metadata) -> u64 {
    metadata.len()
}
