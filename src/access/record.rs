//! The record of requests and of what the service itself did: who did when what from where, never a text and never a query.

use super::record_file::{RecordFile, count_lost};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Lines that may wait for the disk.
const MOST_WAITING: usize = 65_536;
/// Maximum time until a line is written.
const FLUSH: Duration = Duration::from_millis(200);

/// A request that was answered.
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
    /// Address of the peer of the connection, which may be a proxy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Address of the client, if the peer is one of `server.proxies` and says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_address: Option<String>,
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

/// An action of the service itself.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RecordedEvent {
    /// The service started.
    Started {
        version: &'static str,
        /// SHA-256 of the settings in force, the same for equal settings of the same version.
        settings: String,
        /// Ids of the keys.
        keys: Vec<String>,
    },
    /// The service ended in order.
    Stopped,
    /// The keys were read again.
    KeysRead { added: Vec<String>, removed: Vec<String> },
    /// The disk did not take these entries, or not as fast as they came.
    EntriesLost { entries: u64 },
}

/// An event with its time.
#[derive(Serialize)]
struct TimedEvent<'a> {
    time: String,
    #[serde(flatten)]
    event: &'a RecordedEvent,
}

/// The record, written by a thread of its own: lines of JSON. Cheap to clone; clones are the same one. Entries that are noted before the
/// last one is dropped are written.
#[derive(Clone, Debug)]
pub struct AccessRecord {
    writer: Arc<Writer>,
}

#[derive(Debug)]
struct Writer {
    lines: Mutex<Option<SyncSender<String>>>,
    shared: Arc<WriterState>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// State that the thread shares.
#[derive(Debug, Default)]
struct WriterState {
    reopen: AtomicBool,
    is_failing: AtomicBool,
    /// Entries that were lost, and are not yet in the record as such.
    lost: AtomicU64,
}

impl AccessRecord {
    /// Opens the file, to whose end lines are added.
    ///
    /// # Errors
    /// Where it cannot be written, or there is no thread.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = RecordFile::open(path)?;
        let (lines, received) = sync_channel(MOST_WAITING);
        let shared = Arc::<WriterState>::default();
        let state = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("access-record".to_owned())
            .spawn(move || write_lines(file, &received, &state))?;
        let writer = Writer { lines: Mutex::new(Some(lines)), shared, thread: Mutex::new(Some(thread)) };
        Ok(Self { writer: Arc::new(writer) })
    }

    /// Notes a request. Never blocks: where the disk does not keep up, the entry is lost and counted.
    pub fn note(&self, entry: &AccessEntry) {
        self.send(serde_json::to_string(entry));
    }

    /// Notes an event. Never blocks.
    pub fn note_event(&self, event: &RecordedEvent) {
        self.send(timed(event));
    }

    fn send(&self, entry: serde_json::Result<String>) {
        let lines = self.writer.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = entry.is_ok_and(|entry| lines.as_ref().is_some_and(|lines| lines.try_send(entry).is_ok()));
        if !sent {
            self.writer.shared.lost.fetch_add(1, Ordering::Relaxed);
            count_lost(1);
        }
    }

    /// Returns true if the file could not be written lately.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.writer.shared.is_failing.load(Ordering::Relaxed)
    }

    /// Writes the noted entries, and ends. Entries that are noted after that are lost.
    pub fn finish(&self) {
        self.writer.finish();
    }

    /// Opens the file again with the next line: another program may have put it aside.
    pub fn reopen(&self) {
        self.writer.shared.reopen.store(true, Ordering::Relaxed);
    }
}

fn timed(event: &RecordedEvent) -> serde_json::Result<String> {
    let time = OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default();
    serde_json::to_string(&TimedEvent { time, event })
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
fn write_lines(mut file: RecordFile, lines: &Receiver<String>, state: &WriterState) {
    let (mut failing, mut flushed) = (false, Instant::now());
    loop {
        let line = lines.recv_timeout(FLUSH);
        // Where there is no new file, the one that is open takes the line.
        let renewed = if line.is_ok() { file.renew_if(&state.reopen) } else { Ok(()) };
        let mut written = line.as_ref().map_or(Ok(()), |line| write(&mut file, line, state));
        let is_flushed = line.is_err() || flushed.elapsed() >= FLUSH;
        if is_flushed {
            written = written.and(file.flush());
            flushed = Instant::now();
        }
        let (path, was_failing) = (file.path.display(), failing);
        // A line that waits in memory says nothing of the file.
        if is_flushed {
            failing = false;
        }
        for (result, consequence) in
            [(&written, "entries wait or are lost"), (&renewed, "it goes on in the file that is open")]
        {
            let Err(error) = result else { continue };
            failing = true;
            if !was_failing {
                tracing::error!(%error, %path, "the access record cannot be written as it should: {consequence}");
            }
        }
        if written.is_err() || is_flushed {
            state.is_failing.store(written.is_err(), Ordering::Relaxed);
        }
        if line == Err(RecvTimeoutError::Disconnected) {
            tracing::info!(last_line = file.last_line(), "the access record ends");
            return;
        }
    }
}

/// Adds a line, and before it the number of those that were lost.
fn write(file: &mut RecordFile, line: &str, state: &WriterState) -> io::Result<()> {
    let entries = state.lost.swap(0, Ordering::Relaxed);
    let note_lost = if entries > 0 {
        let lost = timed(&RecordedEvent::EntriesLost { entries }).map_err(io::Error::other);
        lost.and_then(|lost| file.write(&lost))
    } else {
        Ok(())
    };
    note_lost.inspect_err(|_| _ = state.lost.fetch_add(entries, Ordering::Relaxed))?;
    file.write(line).inspect_err(|_| {
        state.lost.fetch_add(1, Ordering::Relaxed);
        count_lost(1);
    })
}

#[cfg(test)]
mod tests;
