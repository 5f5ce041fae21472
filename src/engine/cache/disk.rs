//! Statistics on disk, so that they outlive the process: looked up by requests, written by a thread of its own.
//!
//! Invariants:
//!
//! - it can only save a forward pass: whatever goes wrong with it is a miss, a warning and a count;
//! - who inserts never waits: what the thread cannot keep up with is dropped and counted;
//! - what is read is what was written, or it is not used.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use super::files::{Batch, DiskFault, Files, Folder};
use super::record::{decode, encode, encoded_len, key};
use crate::engine::metrics::DiskMetrics;
use crate::engine::request::Stats;
use crate::engine::settings::DiskCache;

/// What may wait to be written. More means that the disk is slower than the models.
const QUEUE_BYTES: u64 = 64 << 20;

/// The most that one commit takes of the disk, by [`cost`]; less where the limit is small, so that no commit passes it.
const BATCH_BYTES: u64 = 32 << 20;
const BATCHES_OF_LIMIT: u64 = 32;

/// Room for a commit and for what redb notes of it, in such batches: the young file makes way before that is gone.
const RESERVE: u64 = 2;

/// What is written anew beside a value: the page that it comes to, and its part of those above.
const PAGES_BYTES: u64 = 8 << 10;

/// How long a commit waits for more to write, and so what a crash may lose.
const LINGER: Duration = Duration::from_secs(1);

/// How long the cache stays closed after an error of the disk.
const PAUSE: Duration = Duration::from_secs(60);

/// Warnings come no more often than this; every error is counted.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

/// The cache on disk. Dropping it, or [`Disk::close`], writes what is queued.
pub(super) struct Disk {
    store: Arc<DiskStore>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Statistics to write.
struct Job {
    identity: Arc<str>,
    ids: Arc<[u32]>,
    stats: Stats,
    generation: u64,
}

/// What the writing thread shares with those who look up.
struct DiskStore {
    limit: u64,
    state: RwLock<State>,
    /// Bytes of the jobs that wait.
    queued: AtomicU64,
    /// Grows when everything is deleted: what was queued before is not written.
    generation: AtomicU64,
    /// Whether a look-up found the files damaged.
    damaged: AtomicBool,
    metrics: DiskMetrics,
    warned: Mutex<Option<Instant>>,
}

/// The folder until the cache is closed for good, and its files, or since when they pause.
struct State {
    folder: Option<Folder>,
    files: Result<Files, Instant>,
}

impl Disk {
    /// Opens the cache. None, with a warning, where that fails or another process has it.
    pub(super) fn open(settings: &DiskCache, metrics: DiskMetrics) -> Option<Self> {
        match Self::try_open(settings, &metrics) {
            Ok(disk) => Some(disk),
            Err(fault) => {
                metrics.open_errors.increment(1);
                let directory = settings.directory.display();
                tracing::warn!(%directory, reason = %fault, "there is no cache on disk");
                None
            }
        }
    }

    fn try_open(settings: &DiskCache, metrics: &DiskMetrics) -> Result<Self, DiskFault> {
        let folder = Folder::take(&settings.directory)?;
        let files = folder.open()?;
        metrics.bytes.set(folder.bytes().1 as f64);
        let store = Arc::new(DiskStore {
            limit: settings.limit,
            state: RwLock::new(State { folder: Some(folder), files: Ok(files) }),
            queued: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            metrics: metrics.clone(),
            warned: Mutex::default(),
        });
        let (jobs, queue) = channel();
        let writer = Arc::clone(&store);
        let thread = Builder::new().name("disk-cache".to_owned()).spawn(move || writer.write_all(&queue))?;
        Ok(Self { store, jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Queues statistics to be written. Never blocks.
    pub(super) fn insert(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        let (store, bytes) = (&self.store, encoded_len(stats.len()) as u64);
        let queued = store.queued.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let generation = store.generation.load(Ordering::Acquire);
        let job = Job { identity: Arc::clone(identity), ids: Arc::clone(ids), stats: Arc::clone(stats), generation };
        let room = cost(bytes) <= store.batch_bytes() && queued <= QUEUE_BYTES;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = room && jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            store.queued.fetch_sub(bytes, Ordering::Relaxed);
            store.metrics.dropped.increment(1);
        }
    }

    /// Looks up sequences, each wanted for something of the caller's, and hands `take` those that are there. Reads files: not
    /// for a thread that must not block. What is in the file that is deleted next is written again, so that what is used
    /// stays.
    pub(super) fn recall<'a, T>(
        &self,
        identity: &Arc<str>,
        wanted: impl Iterator<Item = (&'a Arc<[u32]>, T)>,
        mut take: impl FnMut(T, &Arc<[u32]>, Stats),
    ) {
        let outcome = self.store.look_up(identity, wanted, |wanted_for, ids, stats, going| {
            if going {
                self.insert(identity, ids, &stats);
            }
            take(wanted_for, ids, stats);
        });
        if let Err(fault) = outcome {
            self.store.note_read_fault(&fault);
        }
    }

    /// Deletes all that it holds, and what is queued.
    pub(super) fn clear(&self) -> Result<(), DiskFault> {
        self.store.clear()
    }

    /// Writes what is queued, and lets go of the directory. Later look-ups find nothing.
    pub(super) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Fails only where the thread panicked, and then it has ended as well.
            let _ = thread.join();
        }
        self.store.pause();
        self.store.write_state().folder = None;
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Disk").field("limit", &self.store.limit).finish_non_exhaustive()
    }
}

/// What a value of so many bytes takes of the disk at most: redb rounds its page up to a power of two.
fn cost(bytes: u64) -> u64 {
    2 * bytes + PAGES_BYTES
}

impl DiskStore {
    fn batch_bytes(&self) -> u64 {
        BATCH_BYTES.min(self.limit / BATCHES_OF_LIMIT)
    }

    /// Hands every sequence that is there to `take`, and says whether it is in the file that is the next to go.
    fn look_up<'a, T>(
        &self,
        identity: &str,
        wanted: impl Iterator<Item = (&'a Arc<[u32]>, T)>,
        mut take: impl FnMut(T, &Arc<[u32]>, Stats, bool),
    ) -> Result<(), DiskFault> {
        let state = self.read_state();
        let Ok(files) = &state.files else { return Ok(()) };
        if self.damaged.load(Ordering::Relaxed) {
            return Ok(());
        }
        let snapshot = files.snapshot()?;
        for (ids, wanted_for) in wanted {
            let key = key(identity, ids);
            let Some((value, going)) = snapshot.get(&key)? else { continue };
            match decode(&key, ids.len(), &value) {
                Ok(stats) => take(wanted_for, ids, stats, going),
                // The sequence runs, and what comes of it replaces the value.
                Err(damage) => {
                    self.metrics.read_errors.increment(1);
                    self.warn(&damage, "a value of the cache on disk is damaged and not used");
                }
            }
        }
        Ok(())
    }

    fn note_read_fault(&self, fault: &DiskFault) {
        self.metrics.read_errors.increment(1);
        self.warn(fault, "the cache on disk cannot be read");
        if matches!(fault, DiskFault::Damaged(_)) {
            self.damaged.store(true, Ordering::Relaxed);
        }
    }

    /// The writing thread.
    fn write_all(&self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let generation = first.generation;
            let batch = self.gather(first, queue);
            if !self.try_to_write(&batch, generation) {
                self.metrics.dropped.increment(batch.len() as u64);
            }
        }
    }

    /// Whether the batch was written. Where the files turn out to be damaged a second try finds them begun anew.
    fn try_to_write(&self, batch: &Batch, generation: u64) -> bool {
        for _ in 0..2 {
            match self.write(batch, generation) {
                Ok(written) => return written,
                Err(fault) => self.note_write_fault(&fault),
            }
        }
        false
    }

    fn note_write_fault(&self, fault: &DiskFault) {
        self.metrics.write_errors.increment(1);
        self.warn(fault, "the cache on disk cannot be written");
        if matches!(fault, DiskFault::Damaged(_)) {
            self.damaged.store(true, Ordering::Relaxed);
        } else {
            self.pause();
        }
    }

    /// What is to be written at once.
    fn gather(&self, first: Job, queue: &Receiver<Job>) -> Batch {
        let until = Instant::now() + LINGER;
        let (mut batch, mut costs, generation, mut next) = (Batch::new(), 0, first.generation, Some(first));
        while let Some(Job { identity, ids, stats, generation: queued }) = next {
            let key = key(&identity, &ids);
            let value = encode(&key, &stats);
            costs += cost(value.len() as u64);
            self.queued.fetch_sub(value.len() as u64, Ordering::Relaxed);
            if queued == generation {
                batch.insert(key, value);
            }
            let full = costs >= self.batch_bytes();
            next = if full { None } else { queue.recv_timeout(until.saturating_duration_since(Instant::now())).ok() };
        }
        batch
    }

    /// Whether the batch was written, which it is not while the cache pauses, nor after everything was deleted.
    fn write(&self, batch: &Batch, generation: u64) -> Result<bool, DiskFault> {
        self.make_usable()?;
        let full = {
            let state = self.read_state();
            let (Some(folder), Ok(files)) = (&state.folder, &state.files) else { return Ok(false) };
            if self.generation.load(Ordering::Acquire) != generation {
                return Ok(false);
            }
            files.put(batch)?;
            let (young, both) = folder.bytes();
            self.metrics.bytes.set(both as f64);
            young + RESERVE * self.batch_bytes() >= self.limit / 2
        };
        if full {
            self.turn()?;
        }
        Ok(true)
    }

    fn clear(&self) -> Result<(), DiskFault> {
        let mut state = self.write_state();
        self.generation.fetch_add(1, Ordering::AcqRel);
        if let Ok(files) = std::mem::replace(&mut state.files, Err(Instant::now())) {
            files.close();
        }
        let Some(folder) = &state.folder else { return Ok(()) };
        folder.clear()?;
        let files = folder.open()?;
        state.files = Ok(files);
        self.damaged.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Lets the oldest go.
    fn turn(&self) -> Result<(), DiskFault> {
        let mut state = self.write_state();
        if let State { folder: Some(folder), files: Ok(files) } = &mut *state {
            folder.turn(files)?;
            self.metrics.bytes.set(folder.bytes().1 as f64);
        }
        Ok(())
    }

    /// Drops the files where they are damaged, and opens them again where they paused for long enough.
    fn make_usable(&self) -> Result<(), DiskFault> {
        let damaged = self.damaged.load(Ordering::Relaxed);
        let waits = match &self.read_state().files {
            Ok(_) => !damaged,
            Err(since) => since.elapsed() < PAUSE,
        };
        if waits {
            return Ok(());
        }
        self.pause();
        let mut state = self.write_state();
        let Some(folder) = &state.folder else { return Ok(()) };
        if damaged {
            tracing::warn!("the cache on disk is damaged: it is dropped and begun anew");
            folder.clear()?;
        }
        let files = folder.open()?;
        state.files = Ok(files);
        self.damaged.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Closes the files.
    fn pause(&self) {
        let files = std::mem::replace(&mut self.write_state().files, Err(Instant::now()));
        if let Ok(files) = files {
            files.close();
        }
    }

    fn read_state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn warn(&self, reason: &dyn fmt::Display, message: &str) {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= BETWEEN_WARNINGS) {
            *warned = Some(Instant::now());
            tracing::warn!(%reason, "{message}");
        }
    }
}
