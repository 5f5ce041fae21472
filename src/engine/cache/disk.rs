//! Statistics on disk, so that they outlive the process: looked up by requests, written by a thread of its own.
//!
//! Invariants:
//!
//! - it can only save a forward pass: whatever goes wrong with it is a miss, a warning and a count;
//! - who inserts never waits: what the thread cannot keep up with is dropped and counted;
//! - what is read is what was written, or it is not used;
//! - what unfinished work has used does not make room for others: where there is nothing else to drop, nothing is written.

use super::files::{Batch, DiskFault, Files, Folder, Storage};
use super::holds::Holds;
use super::record::{decode, encode, encoded_len, keys};
use crate::engine::DiskCache;
use crate::engine::metrics::DiskMetrics;
use crate::engine::request::Stats;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Maximum number of bytes waiting to be written. More means that the disk is slower than the models.
const QUEUE_BYTES: u64 = 64 << 20;

/// Maximum size of one commit on disk, by [`cost`]; less if the limit is small, so that no commit exceeds it.
const BATCH_BYTES: u64 = 32 << 20;
const BATCHES_OF_LIMIT: u64 = 32;

/// Room for a commit and for what redb notes of it, in such batches: the young file makes way before that is gone.
const RESERVE: u64 = 2;

/// Bytes rewritten beside a value: the page that it goes to, and its share of the pages above.
const PAGES_BYTES: u64 = 8 << 10;

/// Time that a commit waits for more to write, and so the maximum loss in a crash.
const LINGER: Duration = Duration::from_secs(1);

/// Time that the cache stays closed after an error of the disk.
const PAUSE: Duration = Duration::from_secs(60);

/// Warnings come no more often than this; every error is counted.
const BETWEEN_WARNINGS: Duration = Duration::from_secs(60);

struct Job {
    identity: Arc<str>,
    ids: Arc<[u32]>,
    stats: Stats,
    /// True if they are in the old file, and so must not be deleted with it.
    is_old: bool,
}

/// The cache on disk. [`Disk::close`] writes what is queued and ends the writing thread, which shares the cache until then.
pub(super) struct Disk {
    limit: u64,
    state: RwLock<Storage>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Bytes of the jobs that wait.
    queued: AtomicU64,
    /// True if a lookup found the files damaged.
    damaged: AtomicBool,
    /// When something in the old file was last used without being written to the young one.
    old_used: Mutex<Instant>,
    /// True if the young file is full and the old one must not be deleted.
    full: AtomicBool,
    holds: Arc<Holds>,
    metrics: DiskMetrics,
    warned: Mutex<Option<Instant>>,
}

/// Returns the maximum disk space of a value of `bytes` bytes: redb rounds its page up to a power of two.
fn cost(bytes: u64) -> u64 {
    2 * bytes + PAGES_BYTES
}

impl Disk {
    /// Opens the cache. None, with a warning, where that fails or another process has it.
    pub(super) fn open(settings: &DiskCache, metrics: DiskMetrics, holds: Arc<Holds>) -> Option<Arc<Self>> {
        match Self::try_open(settings, &metrics, holds) {
            Ok(disk) => Some(disk),
            Err(fault) => {
                metrics.open_errors.increment(1);
                let directory = settings.directory.display();
                tracing::warn!(%directory, reason = %fault, "there is no cache on disk");
                None
            }
        }
    }

    fn try_open(settings: &DiskCache, metrics: &DiskMetrics, holds: Arc<Holds>) -> Result<Arc<Self>, DiskFault> {
        let folder = Folder::take(&settings.directory)?;
        let files = folder.open()?;
        metrics.bytes.set(folder.bytes().1 as f64);
        let (jobs, queue) = channel();
        let disk = Arc::new(Self {
            limit: settings.limit,
            state: RwLock::new(Storage { folder: Some(folder), files: Ok(files) }),
            jobs: Mutex::new(Some(jobs)),
            thread: Mutex::default(),
            queued: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            old_used: Mutex::new(Instant::now()),
            full: AtomicBool::new(false),
            holds,
            metrics: metrics.clone(),
            warned: Mutex::default(),
        });
        let writer = Arc::clone(&disk);
        let thread = Builder::new().name("disk-cache".to_owned()).spawn(move || writer.write_all(&queue))?;
        *disk.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(disk)
    }

    /// Queues statistics to be written. Never blocks.
    pub(super) fn insert(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        self.queue(identity, ids, stats, false);
    }

    /// Returns true if they could be queued.
    fn queue(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats, is_old: bool) -> bool {
        let bytes = encoded_len(stats.len()) as u64;
        let queued = self.queued.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let (identity, ids, stats) = (Arc::clone(identity), Arc::clone(ids), Arc::clone(stats));
        let job = Job { identity, ids, stats, is_old };
        let room = cost(bytes) <= self.batch_bytes() && queued <= QUEUE_BYTES;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = room && jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            self.queued.fetch_sub(bytes, Ordering::Relaxed);
            self.metrics.dropped.increment(1);
        }
        sent
    }

    /// Writes what is queued, and lets go of the directory. Later look-ups find nothing.
    pub(super) fn close(&self) {
        drop(self.jobs.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Fails only where the thread panicked, and then it has ended as well.
            let _ = thread.join();
        }
        let mut state = self.write_state();
        state.pause();
        state.folder = None;
    }

    /// Returns the maximum size of one commit, by [`cost`].
    fn batch_bytes(&self) -> u64 {
        BATCH_BYTES.min(self.limit / BATCHES_OF_LIMIT)
    }

    /// Looks up sequences, each wanted for something of the caller's, and hands `take` those that are there. Reads files: not
    /// for a thread that must not block.
    pub(super) fn recall<'a, T>(
        &self,
        identity: &Arc<str>,
        wanted: impl Iterator<Item = (&'a Arc<[u32]>, T)>,
        take: impl FnMut(T, &Arc<[u32]>, Stats),
    ) {
        if let Err(fault) = self.look_up(identity, wanted, take) {
            self.metrics.read_errors.increment(1);
            self.warn(&fault, "the cache on disk cannot be read");
            if matches!(fault, DiskFault::Damaged(_)) {
                self.damaged.store(true, Ordering::Relaxed);
            }
        }
    }

    fn look_up<'a, T>(
        &self,
        identity: &Arc<str>,
        wanted: impl Iterator<Item = (&'a Arc<[u32]>, T)>,
        mut take: impl FnMut(T, &Arc<[u32]>, Stats),
    ) -> Result<(), DiskFault> {
        let state = self.read_state();
        let Ok(files) = &state.files else { return Ok(()) };
        if self.damaged.load(Ordering::Relaxed) {
            return Ok(());
        }
        let snapshot = files.snapshot()?;
        for (ids, wanted_for) in wanted {
            let keys = keys(identity, ids);
            let Some((value, is_old)) = snapshot.get(&keys.record)? else { continue };
            match decode(&keys, ids.len(), value) {
                Ok(stats) => {
                    // Written again, so that what is used outlives the file that is deleted next.
                    if is_old && !self.queue(identity, ids, &stats, true) {
                        self.note_use();
                    }
                    take(wanted_for, ids, stats);
                }
                // The sequence runs, and its statistics replace the value.
                Err(damage) => {
                    self.metrics.read_errors.increment(1);
                    self.warn(&damage, "a value of the cache on disk is damaged and not used");
                }
            }
        }
        Ok(())
    }

    fn write_all(&self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let (batch, has_old) = self.gather(first, queue);
            if !self.try_to_write(&batch) {
                self.metrics.dropped.increment(batch.len() as u64);
                if has_old {
                    self.note_use();
                }
            }
        }
    }

    /// Returns true if the batch was written. If the files turn out to be damaged, a second try finds them begun anew.
    fn try_to_write(&self, batch: &Batch) -> bool {
        for _ in 0..2 {
            match self.write(batch) {
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
            self.write_state().pause();
        }
    }

    /// Collects the batch to write at once, and tells whether some of it is in the old file.
    fn gather(&self, first: Job, queue: &Receiver<Job>) -> (Batch, bool) {
        let until = Instant::now() + LINGER;
        let (mut batch, mut has_old, mut costs) = (Batch::new(), false, 0);
        let mut next = Some(first);
        while let Some(Job { identity, ids, stats, is_old }) = next {
            let keys = keys(&identity, &ids);
            let value = encode(&keys, &stats);
            costs += cost(value.len() as u64);
            self.queued.fetch_sub(value.len() as u64, Ordering::Relaxed);
            batch.insert(keys.record, value);
            has_old |= is_old;
            let full = costs >= self.batch_bytes();
            next = if full { None } else { queue.recv_timeout(until.saturating_duration_since(Instant::now())).ok() };
        }
        (batch, has_old)
    }

    /// Returns true if the batch was written; it is not while the cache pauses.
    fn write(&self, batch: &Batch) -> Result<bool, DiskFault> {
        self.make_usable()?;
        if self.full.load(Ordering::Relaxed) && !self.make_room()? {
            return Ok(false);
        }
        let full = {
            let state = self.read_state();
            let (Some(folder), Ok(files)) = (&state.folder, &state.files) else { return Ok(false) };
            files.put(batch)?;
            let (young, both) = folder.bytes();
            self.metrics.bytes.set(both as f64);
            young + RESERVE * self.batch_bytes() >= self.limit / 2
        };
        if full {
            self.make_room()?;
        }
        Ok(true)
    }

    /// Lets the oldest go, unless unfinished work needs them. Returns true if there is room now.
    fn make_room(&self) -> Result<bool, DiskFault> {
        let has_old = self.read_state().files.as_ref().is_ok_and(Files::has_old);
        let used = *self.old_used.lock().unwrap_or_else(PoisonError::into_inner);
        let held = has_old && self.holds.need(used);
        self.full.store(held, Ordering::Relaxed);
        if held {
            let reason = "unfinished audits need all that it holds; `engine.disk_cache_limit` bounds it";
            self.warn(&reason, "the cache on disk is full, and nothing is written to it");
            return Ok(false);
        }
        self.turn()?;
        self.note_use();
        Ok(true)
    }

    /// Notes that something in the old file is needed from there.
    fn note_use(&self) {
        *self.old_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn turn(&self) -> Result<(), DiskFault> {
        let mut state = self.write_state();
        if let Storage { folder: Some(folder), files: Ok(files) } = &mut *state {
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
        if damaged {
            tracing::warn!("the cache on disk is damaged: it is dropped and begun anew");
        }
        self.write_state().reopen(damaged)?;
        self.damaged.store(false, Ordering::Relaxed);
        Ok(())
    }

    fn read_state(&self) -> RwLockReadGuard<'_, Storage> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_state(&self) -> RwLockWriteGuard<'_, Storage> {
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

impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Disk").field("limit", &self.limit).finish_non_exhaustive()
    }
}
