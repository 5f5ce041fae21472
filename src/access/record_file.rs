//! The file of the access record: lines are added, chained, and put aside where there are many.

use super::record_chain::{GENESIS, chained_line, line_digest};
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
    bytes: u64,
    end: ChainEnd,
}

/// The end of a record, to which the next line is chained.
struct ChainEnd {
    /// Digest of the last line.
    digest: String,
    /// True if that line has no line break, since a crash cut it.
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
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file: BufWriter::with_capacity(BUFFER, file), bytes, end })
    }

    /// Goes on in a new file where this one is long or that is asked for. A request that fails is kept.
    pub(super) fn renew_if(&mut self, reopen: &AtomicBool) -> io::Result<()> {
        let (is_long, asked) = (self.bytes >= MOST_BYTES, reopen.swap(false, Ordering::Relaxed));
        if !is_long && !asked {
            return Ok(());
        }
        let renewed = self.renew(is_long);
        if asked && renewed.is_err() {
            reopen.store(true, Ordering::Relaxed);
        }
        renewed
    }

    fn renew(&mut self, is_long: bool) -> io::Result<()> {
        self.file.flush()?;
        if is_long && let Err(error) = std::fs::rename(&self.path, set_aside(&self.path, OffsetDateTime::now_utc())) {
            // Another program may have put it aside.
            tracing::debug!(%error, "the access record was not put aside");
        }
        // Else the lock of this file would keep the same one from being opened again.
        self.file.get_ref().unlock()?;
        let end = ChainEnd { digest: self.end.digest.clone(), is_cut: false };
        match Self::open_at(&self.path, end) {
            Ok(file) => *self = file,
            Err(error) => {
                self.file.get_ref().lock()?;
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
        let text = format!("{}{line}\n", if *is_cut { "\n" } else { "" });
        self.file.write_all(text.as_bytes())?;
        self.bytes += text.len() as u64;
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
        let mut file = match File::open(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() == 0 {
            return Ok(None);
        }
        let mut end = Vec::new();
        file.seek(SeekFrom::Start(metadata.len().saturating_sub(2 * BUFFER as u64)))?;
        file.read_to_end(&mut end)?;
        let is_cut = end.last() != Some(&b'\n');
        if !is_cut {
            end.pop();
        }
        let begin = end.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
        Ok(Some(Self { digest: line_digest(&end[begin..]), is_cut }))
    }
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
