//! The file of the access record: lines are added, chained, and put aside where there are many.

use super::record_chain::{GENESIS, chained_line, is_entry, line_digest};
use crate::telemetry::names;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use time::OffsetDateTime;
use time::macros::format_description;

/// The file is put aside once it is longer than this.
pub(super) const MOST_BYTES: u64 = 64 << 20;
/// Bytes of lines that wait for a flush; no line is as long.
const BUFFER: usize = 1 << 20;

/// The file, and the end of its chain.
pub(super) struct RecordFile {
    pub(super) path: PathBuf,
    file: BufWriter<File>,
    /// Bytes until it is put aside; `None` for what is no regular file, which stays where it is.
    room: Option<u64>,
    /// True if the file ends in the middle of a line, since a crash cut it.
    needs_line_break: bool,
    end: ChainEnd,
}

/// The end of a record, to which the next line is chained.
#[derive(Clone)]
struct ChainEnd {
    /// Digest of the last line.
    digest: String,
    /// True if that line is no entry, since a crash cut it.
    is_cut: bool,
}

impl RecordFile {
    /// Opens the file, or creates it; it continues the chain of the file itself, or else of the newest one that was put aside.
    ///
    /// # Errors
    /// An error of the file, or if another process writes it.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let end = match ChainEnd::read(path)? {
            Some(end) => Some(end),
            None => newest_set_aside(path)?.map(|aside| ChainEnd::read(&aside)).transpose()?.flatten(),
        };
        Self::open_at(path, end.unwrap_or(ChainEnd { digest: GENESIS.to_owned(), is_cut: false }))
    }

    fn open_at(path: &Path, end: ChainEnd) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(io::Error::other("another process writes this record")),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let metadata = file.metadata()?;
        let room = metadata.is_file().then(|| MOST_BYTES.saturating_sub(metadata.len()));
        let needs_line_break = last_bytes(path, 1)?.is_some_and(|end| end != b"\n");
        let file = BufWriter::with_capacity(BUFFER, file);
        Ok(Self { path: path.to_owned(), file, room, needs_line_break, end })
    }

    /// Goes on in a new file where this one is long or that is asked for. A request that fails is kept.
    pub(super) fn renew_if(&mut self, reopen: &AtomicBool) -> io::Result<()> {
        let is_long = self.room == Some(0);
        if is_long {
            self.file.flush()?;
            let aside = set_aside(&self.path, OffsetDateTime::now_utc());
            // It is tried again only after as much as a new file would take.
            self.room = Some(MOST_BYTES);
            std::fs::rename(&self.path, aside)?;
        }
        let is_asked = reopen.swap(false, Ordering::Relaxed);
        if !is_long && !is_asked {
            return Ok(());
        }
        // Without a new file, lines would go to the one that was put aside, which is no loss but not where they are looked for.
        self.renew().inspect_err(|_| reopen.store(true, Ordering::Relaxed))
    }

    fn renew(&mut self) -> io::Result<()> {
        self.file.flush()?;
        // Else the lock of this file would keep the same one from being opened again.
        self.file.get_ref().unlock()?;
        match Self::open_at(&self.path, self.end.clone()) {
            Ok(file) => *self = file,
            Err(error) => {
                // Another process that has it by now would be waited for without end.
                let _ = self.file.get_ref().try_lock();
                return Err(error);
            }
        }
        tracing::info!(last_line = self.end.digest, "the access record goes on in a new file");
        Ok(())
    }

    /// Adds an entry, which is a JSON object, as a line that is chained to the last one.
    pub(super) fn write(&mut self, entry: &str) -> io::Result<()> {
        let ChainEnd { digest, is_cut } = &self.end;
        let line = chained_line(digest, *is_cut, entry);
        let text = format!("{}{line}\n", if self.needs_line_break { "\n" } else { "" });
        self.file.write_all(text.as_bytes())?;
        self.room = self.room.map(|room| room.saturating_sub(text.len() as u64));
        self.needs_line_break = false;
        self.end = ChainEnd { digest: line_digest(line.as_bytes()), is_cut: false };
        Ok(())
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Digest of the last line.
    pub(super) fn last_line(&self) -> &str {
        &self.end.digest
    }
}

impl ChainEnd {
    /// Reads the end of a file; `None` if it has no line, or is no file.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let Some(end) = last_bytes(path, 2 * BUFFER as u64)? else { return Ok(None) };
        let lines = end.strip_suffix(b"\n").unwrap_or(&end);
        let line = lines.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
        Ok(Some(Self { digest: line_digest(line), is_cut: !is_entry(line) }))
    }
}

/// Reads up to `most` bytes of the end of a file; `None` if it is empty, or no regular file.
fn last_bytes(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() == 0 {
        return Ok(None);
    }
    let mut end = Vec::new();
    file.seek(SeekFrom::Start(metadata.len().saturating_sub(most)))?;
    file.read_to_end(&mut end)?;
    Ok(Some(end))
}

/// Counts entries that are lost.
pub(super) fn count_lost(entries: u64) {
    metrics::counter!(names::ACCESS_RECORD_LOST).increment(entries);
}

/// Returns the name of a file that is put aside at this time: `access.ndjson` becomes `access-20261122T101500.123456Z.ndjson`.
fn set_aside(path: &Path, now: OffsetDateTime) -> PathBuf {
    let format = format_description!("[year][month][day]T[hour][minute][second].[subsecond digits:6]Z");
    let stamp = now.format(&format).unwrap_or_else(|_| now.unix_timestamp().to_string());
    let (begin, end) = parts(path);
    path.with_file_name(format!("{begin}{stamp}{end}"))
}

/// Returns the file that was put aside last.
fn newest_set_aside(path: &Path) -> io::Result<Option<PathBuf>> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (begin, end) = parts(path);
    let mut newest: Option<String> = None;
    for entry in std::fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        let stamp = name.strip_prefix(&begin).and_then(|rest| rest.strip_suffix(&end));
        let is_one = stamp.is_some_and(|stamp| stamp.len() == 23 && stamp.starts_with('2') && stamp.ends_with('Z'));
        // Names are in the order of time.
        if is_one && newest.as_ref().is_none_or(|newest| *newest < name) {
            newest = Some(name);
        }
    }
    Ok(newest.map(|name| path.with_file_name(name)))
}

/// Returns what comes before and after the time in the names of files that are put aside.
fn parts(path: &Path) -> (String, String) {
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let extension = part(path.extension());
    let dot = if extension.is_empty() { "" } else { "." };
    (format!("{}-", part(path.file_stem())), format!("{dot}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_put_aside_under_the_time() {
        let time = OffsetDateTime::UNIX_EPOCH;
        assert_eq!(set_aside(Path::new("/a/b.ndjson"), time), Path::new("/a/b-19700101T000000.000000Z.ndjson"));
        assert_eq!(set_aside(Path::new("record"), time), Path::new("record-19700101T000000.000000Z"));
    }
}
