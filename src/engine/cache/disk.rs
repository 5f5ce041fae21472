//! Statistics on disk, so that they outlive the process: looked up by requests, written by a thread of its own.
//!
//! Invariants:
//!
//! - it can only save a forward pass: whatever goes wrong with it is a miss, a warning and a count;
//! - who inserts never waits: what the thread cannot keep up with is dropped and counted;
//! - what is read is what was written, or it is not used;
//! - what unfinished work has used does not make room for others: where there is nothing else to drop, nothing is written.

use super::disk_store::{DiskStore, Job, cost};
use super::files::{DiskFault, Folder};
use super::holds::Holds;
use super::record::encoded_len;
use crate::engine::metrics::DiskMetrics;
use crate::engine::request::Stats;
use crate::engine::settings::DiskCache;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Maximum number of bytes waiting to be written. More means that the disk is slower than the models.
const QUEUE_BYTES: u64 = 64 << 20;

/// The cache on disk. Dropping it, or [`Disk::close`], writes what is queued.
pub(super) struct Disk {
    store: Arc<DiskStore>,
    jobs: Mutex<Option<Sender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Disk {
    /// Opens the cache. None, with a warning, where that fails or another process has it.
    pub(super) fn open(settings: &DiskCache, metrics: DiskMetrics, holds: Arc<Holds>) -> Option<Self> {
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

    fn try_open(settings: &DiskCache, metrics: &DiskMetrics, holds: Arc<Holds>) -> Result<Self, DiskFault> {
        let folder = Folder::take(&settings.directory)?;
        let files = folder.open()?;
        metrics.bytes.set(folder.bytes().1 as f64);
        let store = Arc::new(DiskStore::new(folder, files, settings.limit, metrics.clone(), holds));
        let (jobs, queue) = channel();
        let writer = Arc::clone(&store);
        let thread = Builder::new().name("disk-cache".to_owned()).spawn(move || writer.write_all(&queue))?;
        Ok(Self { store, jobs: Mutex::new(Some(jobs)), thread: Mutex::new(Some(thread)) })
    }

    /// Queues statistics to be written. Never blocks.
    pub(super) fn insert(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats) {
        self.queue(identity, ids, stats, false);
    }

    /// Returns true if they could be queued.
    fn queue(&self, identity: &Arc<str>, ids: &Arc<[u32]>, stats: &Stats, is_old: bool) -> bool {
        let (store, bytes) = (&self.store, encoded_len(stats.len()) as u64);
        let queued = store.queued.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let generation = store.generation.load(Ordering::Acquire);
        let (identity, ids, stats) = (Arc::clone(identity), Arc::clone(ids), Arc::clone(stats));
        let job = Job { identity, ids, stats, generation, is_old };
        let room = cost(bytes) <= store.batch_bytes() && queued <= QUEUE_BYTES;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = room && jobs.as_ref().is_some_and(|jobs| jobs.send(job).is_ok());
        if !sent {
            store.queued.fetch_sub(bytes, Ordering::Relaxed);
            store.metrics.dropped.increment(1);
        }
        sent
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
            if going && !self.queue(identity, ids, &stats, true) {
                self.store.note_use();
            }
            take(wanted_for, ids, stats);
        });
        if let Err(fault) = outcome {
            self.store.note_read_fault(&fault);
        }
    }

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
        self.store.close();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for Disk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Disk").field("limit", &self.store.limit()).finish_non_exhaustive()
    }
}
