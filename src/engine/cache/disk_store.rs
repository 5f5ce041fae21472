//! The files of the cache on disk behind their lock: looked up by any thread, written by one, and bounded.

use super::files::{Batch, DiskFault, Files, Folder};
use super::holds::Holds;
use super::record::{decode, encode, key};
use crate::engine::metrics::DiskMetrics;
use crate::engine::request::Stats;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

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

pub(super) struct Job {
    pub identity: Arc<str>,
    pub ids: Arc<[u32]>,
    pub stats: Stats,
    pub generation: u64,
    /// True if they are in the old file, and so must not be deleted with it.
    pub is_old: bool,
}

/// State shared by the writing thread and the lookups.
pub(super) struct DiskStore {
    limit: u64,
    state: RwLock<State>,
    /// Bytes of the jobs that wait.
    pub queued: AtomicU64,
    /// Grows when everything is deleted: what was queued before is not written.
    pub generation: AtomicU64,
    /// True if a lookup found the files damaged.
    damaged: AtomicBool,
    /// When something in the old file was last used without being written to the young one.
    old_used: Mutex<Instant>,
    /// True if the young file is full and the old one must not be deleted.
    full: AtomicBool,
    holds: Arc<Holds>,
    pub metrics: DiskMetrics,
    warned: Mutex<Option<Instant>>,
}

/// The folder until the cache is closed for good, and its files, or since when they pause.
struct State {
    folder: Option<Folder>,
    files: Result<Files, Instant>,
}

/// Returns the maximum disk space of a value of `bytes` bytes: redb rounds its page up to a power of two.
pub(super) fn cost(bytes: u64) -> u64 {
    2 * bytes + PAGES_BYTES
}

impl DiskStore {
    pub fn new(folder: Folder, files: Files, limit: u64, metrics: DiskMetrics, holds: Arc<Holds>) -> Self {
        Self {
            limit,
            state: RwLock::new(State { folder: Some(folder), files: Ok(files) }),
            queued: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            damaged: AtomicBool::new(false),
            old_used: Mutex::new(Instant::now()),
            full: AtomicBool::new(false),
            holds,
            metrics,
            warned: Mutex::default(),
        }
    }

    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Closes the files for good, and lets go of the directory.
    pub fn close(&self) {
        self.pause();
        self.write_state().folder = None;
    }

    pub fn batch_bytes(&self) -> u64 {
        BATCH_BYTES.min(self.limit / BATCHES_OF_LIMIT)
    }

    /// Hands every sequence that is there to `take`, and says whether it is in the file that is the next to go.
    pub fn look_up<'a, T>(
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

    pub fn note_read_fault(&self, fault: &DiskFault) {
        self.metrics.read_errors.increment(1);
        self.warn(fault, "the cache on disk cannot be read");
        if matches!(fault, DiskFault::Damaged(_)) {
            self.damaged.store(true, Ordering::Relaxed);
        }
    }

    pub fn write_all(&self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            let generation = first.generation;
            let (batch, has_old) = self.gather(first, queue);
            if !self.try_to_write(&batch, generation) {
                self.metrics.dropped.increment(batch.len() as u64);
                if has_old {
                    self.note_use();
                }
            }
        }
    }

    /// Returns true if the batch was written. If the files turn out to be damaged, a second try finds them begun anew.
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

    /// Collects the batch to write at once, and tells whether some of it is in the old file.
    fn gather(&self, first: Job, queue: &Receiver<Job>) -> (Batch, bool) {
        let until = Instant::now() + LINGER;
        let (mut batch, mut has_old, mut costs) = (Batch::new(), false, 0);
        let (generation, mut next) = (first.generation, Some(first));
        while let Some(Job { identity, ids, stats, generation: queued, is_old }) = next {
            let key = key(&identity, &ids);
            let value = encode(&key, &stats);
            costs += cost(value.len() as u64);
            self.queued.fetch_sub(value.len() as u64, Ordering::Relaxed);
            if queued == generation {
                batch.insert(key, value);
                has_old |= is_old;
            }
            let full = costs >= self.batch_bytes();
            next = if full { None } else { queue.recv_timeout(until.saturating_duration_since(Instant::now())).ok() };
        }
        (batch, has_old)
    }

    /// Returns true if the batch was written; it is not while the cache pauses, nor after everything was deleted.
    fn write(&self, batch: &Batch, generation: u64) -> Result<bool, DiskFault> {
        self.make_usable()?;
        if self.full.load(Ordering::Relaxed) && !self.make_room()? {
            return Ok(false);
        }
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
    pub fn note_use(&self) {
        *self.old_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub fn clear(&self) -> Result<(), DiskFault> {
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
        self.full.store(false, Ordering::Relaxed);
        Ok(())
    }

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
