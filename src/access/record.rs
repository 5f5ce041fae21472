//! The record of requests: who asked when for what, never a text and never a query.

use crate::telemetry::names;
use serde::Serialize;
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::macros::format_description;

/// The file is put aside once it is longer than this.
const MOST_BYTES: u64 = 64 << 20;
/// Lines that may wait for the disk.
const MOST_WAITING: usize = 65_536;
/// Maximum time until a line is written.
const FLUSH: Duration = Duration::from_millis(200);

#[derive(Clone, Debug, Default, Serialize)]
pub struct AccessEntry {
    /// When it was answered.
    pub time: String,
    pub request_id: String,
    /// Name of the client; absent without keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub method: &'static str,
    /// As the document has it, without ids.
    pub route: String,
    /// 499 where the client went away before the answer.
    pub status: u16,
    pub seconds: f64,
    #[serde(flatten)]
    pub work: RecordedWork,
}

/// Subject of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordedWork {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_digest: Option<String>,
    /// Id of the dataset, which is the digest of its content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub texts: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

/// The record, written by a thread of its own: lines of JSON. Cheap to clone; clones are the same one. What is noted before the last
/// one is dropped is written.
#[derive(Clone, Debug)]
pub struct AccessRecord {
    writer: Arc<Writer>,
}

#[derive(Debug)]
struct Writer {
    lines: Mutex<Option<SyncSender<String>>>,
    reopen: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl AccessRecord {
    /// Opens the file, to whose end lines are added.
    ///
    /// # Errors
    /// Where it cannot be written, or there is no thread.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = RecordFile::open(path)?;
        let (lines, received) = sync_channel(MOST_WAITING);
        let reopen = Arc::new(AtomicBool::new(false));
        let asked = Arc::clone(&reopen);
        let thread = std::thread::Builder::new()
            .name("access-record".to_owned())
            .spawn(move || write_lines(file, &received, &asked))?;
        let writer = Writer { lines: Mutex::new(Some(lines)), reopen, thread: Mutex::new(Some(thread)) };
        Ok(Self { writer: Arc::new(writer) })
    }

    /// Notes a request. Never blocks: where the disk does not keep up, the line is lost and counted.
    pub fn note(&self, entry: &AccessEntry) {
        let Ok(mut line) = serde_json::to_string(entry) else { return };
        line.push('\n');
        let lines = self.writer.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err()) {
            metrics::counter!(names::ACCESS_RECORD_LOST).increment(1);
        }
    }

    /// Writes what is noted, and ends. What is noted after that is lost.
    pub fn finish(&self) {
        self.writer.finish();
    }

    /// Opens the file again with the next line: another program may have put it aside.
    pub fn reopen(&self) {
        self.writer.reopen.store(true, Ordering::Relaxed);
    }
}

impl Writer {
    fn finish(&self) {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // Fails only where it panicked, and then it has ended as well.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.finish();
    }
}

/// Writes lines until nobody can send more.
fn write_lines(mut file: RecordFile, lines: &Receiver<String>, reopen: &AtomicBool) {
    let (mut failing, mut flushed) = (false, Instant::now());
    loop {
        let line = lines.recv_timeout(FLUSH);
        // Where there is no new file, the one that is open takes the line.
        let renewed = if line.is_ok() { file.renew_if(reopen) } else { Ok(()) };
        let mut written = line.as_ref().map_or(Ok(()), |line| file.write(line));
        if line.is_err() || flushed.elapsed() >= FLUSH {
            written = written.and(file.file.flush());
            flushed = Instant::now();
        }
        if written.is_err() {
            metrics::counter!(names::ACCESS_RECORD_LOST).increment(u64::from(line.is_ok()));
        }
        let (path, was_failing) = (file.path.display(), std::mem::replace(&mut failing, false));
        for (result, consequence) in [(&written, "entries are lost"), (&renewed, "it goes on in the file that is open")]
        {
            let Err(error) = result else { continue };
            failing = true;
            if !was_failing {
                tracing::error!(%error, %path, "the access record cannot be written as it should: {consequence}");
            }
        }
        if line == Err(RecvTimeoutError::Disconnected) {
            return;
        }
    }
}

/// The file with what is known of it.
struct RecordFile {
    path: PathBuf,
    file: BufWriter<File>,
    bytes: u64,
}

impl RecordFile {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file), bytes })
    }

    /// Goes on in a new file where this one is long or that is asked for. Whoever asks is heard again where it fails.
    fn renew_if(&mut self, reopen: &AtomicBool) -> io::Result<()> {
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
        *self = Self::open(&self.path)?;
        Ok(())
    }

    fn write(&mut self, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())?;
        self.bytes += line.len() as u64;
        Ok(())
    }
}

/// The name of a file that is put aside at this time: `access.ndjson` becomes `access-20261122T101500.123456Z.ndjson`.
fn set_aside(path: &Path, now: OffsetDateTime) -> PathBuf {
    let format = format_description!("[year][month][day]T[hour][minute][second].[subsecond digits:6]Z");
    let stamp = now.format(&format).unwrap_or_else(|_| now.unix_timestamp().to_string());
    let part = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
    let (stem, extension) = (part(path.file_stem()), part(path.extension()));
    let dot = if extension.is_empty() { "" } else { "." };
    path.with_file_name(format!("{stem}-{stamp}{dot}{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(request_id: &str) -> AccessEntry {
        AccessEntry { request_id: request_id.to_owned(), method: "GET", status: 200, ..AccessEntry::default() }
    }

    fn ids(path: &Path) -> Vec<String> {
        let lines = std::fs::read_to_string(path).unwrap();
        let id =
            |line| serde_json::from_str::<serde_json::Value>(line).unwrap()["request_id"].as_str().unwrap().to_owned();
        lines.lines().map(id).collect()
    }

    #[test]
    fn all_that_is_noted_is_written_when_it_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.ndjson");
        for begin in [0, 500] {
            let record = AccessRecord::open(&path).unwrap();
            (begin..begin + 500).for_each(|number| record.note(&entry(&number.to_string())));
        }
        assert_eq!(ids(&path), (0..1_000).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn a_file_that_was_put_aside_is_begun_anew() {
        let directory = tempfile::tempdir().unwrap();
        let (path, aside) = (directory.path().join("access.ndjson"), directory.path().join("aside"));
        let record = AccessRecord::open(&path).unwrap();
        record.note(&entry("before"));
        std::thread::sleep(2 * FLUSH);
        std::fs::rename(&path, &aside).unwrap();
        record.reopen();
        record.note(&entry("after"));
        drop(record);
        assert_eq!((ids(&aside), ids(&path)), (vec!["before".to_owned()], vec!["after".to_owned()]));
    }

    #[test]
    fn a_file_that_cannot_be_begun_anew_takes_the_lines_until_one_can() {
        let directory = tempfile::tempdir().unwrap();
        let (path, aside) = (directory.path().join("access.ndjson"), directory.path().join("aside"));
        let mut file = RecordFile::open(&path).unwrap();
        let reopen = AtomicBool::new(true);
        std::fs::rename(&path, &aside).unwrap();
        // A directory cannot be written to.
        std::fs::create_dir(&path).unwrap();
        assert!(file.renew_if(&reopen).is_err() && reopen.load(Ordering::Relaxed));
        file.write("one\n").unwrap();
        std::fs::remove_dir(&path).unwrap();
        file.renew_if(&reopen).unwrap();
        assert!(!reopen.load(Ordering::Relaxed));
        file.write("two\n").unwrap();
        drop(file);
        assert_eq!([&aside, &path].map(|path| std::fs::read_to_string(path).unwrap()), ["one\n", "two\n"]);
    }

    #[test]
    fn a_long_file_is_put_aside_under_the_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.ndjson");
        std::fs::write(&path, vec![b' '; MOST_BYTES as usize]).unwrap();
        let record = AccessRecord::open(&path).unwrap();
        record.note(&entry("first"));
        drop(record);
        assert_eq!((ids(&path), std::fs::read_dir(directory.path()).unwrap().count()), (vec!["first".to_owned()], 2));
        let time = OffsetDateTime::UNIX_EPOCH;
        assert_eq!(set_aside(Path::new("/a/b.ndjson"), time), Path::new("/a/b-19700101T000000.000000Z.ndjson"));
        assert_eq!(set_aside(Path::new("record"), time), Path::new("record-19700101T000000.000000Z"));
    }
}
