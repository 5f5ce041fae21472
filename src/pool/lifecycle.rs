//! The state machine of one model. Pure: it holds no lock, reads no file and knows no thread.
//!
//! | from | to | caused by |
//! |---|---|---|
//! | closed | fetching | the start (eager models and those at hand), the first request that names it, a load by hand |
//! | fetching | opened, failed | the thread that reads the files |
//! | opened | fetching | a load by hand, which looks whether the files have changed; requests go on with those of before |
//! | opened | loading | a device thread: the model is eager, a load by hand ordered it, or a request waits for it |
//! | loading | ready, failed | the device thread that loads it |
//! | ready | opened | a device thread that evicts it for another model |
//! | any | draining | an unload or a removal by hand: new requests are refused, admitted ones are finished or, without a server that answers, fail |
//! | draining | opened, closed, or gone | the device thread that drops the last replica after the last request |
//! | failed | fetching, loading | as closed and opened; by requests only after a pause, by hand at once |
//! | failed | fetching, loading | the pool, where the model is eager and nobody has unloaded it: after a pause that doubles with each failure |
//! | loading | opened | the end of the service, before the load has begun |
//!
//! Openers wait for opened or failed, loads by hand for ready or failed, unloads by hand for the end of draining, requests in
//! the queue for ready or failed, and readiness for every eager model to be ready.
//!
//! Load and unload may race. Of the two the unload wins, whichever came first: a load that is asked for while the model
//! drains is refused, and one that an unload overtakes ends with [`LoadError::Unloading`], though what had begun is
//! finished first. So the outcome does not depend on the moment.

use super::adapter::Adapters;
use super::declaration::Declaration;
use super::error::{LoadError, OpenError};
use super::model::Model;
use super::signal::{Lease, LeaseCount, Signal};
use super::state::{Fetch, FilesState, ModelFailure, ModelState, Replica, Retry, RetrySchedule};
use lm::hub::DownloadProgress;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

#[derive(Debug)]
pub(crate) struct Lifecycle {
    declaration: Arc<Declaration>,
    files: FilesState,
    replicas: Vec<(usize, Replica)>,
    failure: Option<ModelFailure>,
    /// When it is tried again by itself; begins anew when it is loaded or unloaded.
    schedule: RetrySchedule,
    /// True if readiness waits for it: it is eager, and nobody has unloaded it by hand.
    awaited: bool,
    draining: bool,
    /// True if it is removed for good once it is drained.
    removed: bool,
    usage: Arc<LeaseCount>,
    pub(super) adapters: Adapters,
    loaded_at: Option<Instant>,
    load_waiters: Vec<oneshot::Sender<Result<(), LoadError>>>,
    unload_waiters: Vec<oneshot::Sender<()>>,
}

impl Lifecycle {
    pub(super) fn new(declaration: Declaration, signal: Arc<Signal>) -> Self {
        Self {
            files: FilesState::Closed,
            replicas: declaration.devices.iter().map(|device| (*device, Replica::Absent)).collect(),
            failure: None,
            schedule: RetrySchedule::default(),
            awaited: declaration.eager,
            draining: false,
            removed: false,
            usage: Arc::new(LeaseCount::new(signal)),
            adapters: Adapters::default(),
            loaded_at: None,
            load_waiters: Vec::new(),
            unload_waiters: Vec::new(),
            declaration: Arc::new(declaration),
        }
    }

    // Queries.

    /// The state to publish. A model with one replica loaded is ready, whatever the others do.
    pub(crate) fn state(&self) -> ModelState {
        if self.draining {
            ModelState::Draining
        } else if self.any(Replica::Resident) {
            ModelState::Ready
        } else if self.is_coming() {
            ModelState::Loading
        } else {
            match (&self.files, &self.failure) {
                (FilesState::Fetching(_), _) => ModelState::Fetching,
                (_, Some(failure)) => ModelState::Failed(failure.reason.clone()),
                (FilesState::Opened(_), None) => ModelState::Opened,
                (FilesState::Closed, None) => ModelState::Closed,
            }
        }
    }

    pub(crate) fn declaration(&self) -> &Arc<Declaration> {
        &self.declaration
    }

    /// The model, where its files are open; while a load by hand looks whether they have changed, the one of before.
    pub(crate) fn model(&self) -> Option<&Arc<Model>> {
        match &self.files {
            FilesState::Opened(model) => Some(model),
            FilesState::Fetching(fetch) => fetch.previous.as_ref(),
            FilesState::Closed => None,
        }
    }

    /// Returns the progress of its download; `None` unless its files are being opened.
    pub(super) fn progress(&self) -> Option<&Arc<DownloadProgress>> {
        match &self.files {
            FilesState::Fetching(fetch) => Some(&fetch.progress),
            FilesState::Opened(_) | FilesState::Closed => None,
        }
    }

    /// Why the last attempt to open it failed, where that is where it stands.
    pub(super) fn open_error(&self) -> Option<&OpenError> {
        self.failure.as_ref()?.open_error.as_ref()
    }

    /// Returns true if readiness still waits for it.
    pub(crate) fn is_missing(&self) -> bool {
        self.awaited && self.state() != ModelState::Ready
    }

    pub(crate) fn resident(&self) -> Vec<usize> {
        let resident = self.replicas.iter().filter(|(_, replica)| *replica == Replica::Resident);
        resident.map(|(device, _)| *device).collect()
    }

    pub(crate) fn loaded_at(&self) -> Option<Instant> {
        self.loaded_at
    }

    pub(crate) fn is_resident(&self, device: usize) -> bool {
        self.replica(device) == Some(Replica::Resident)
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining
    }

    pub(super) fn is_removed(&self) -> bool {
        self.removed
    }

    pub(crate) fn is_in_use(&self) -> bool {
        self.usage.is_in_use()
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.replicas.iter().all(|(_, replica)| *replica == Replica::Absent)
    }

    /// Returns true if the device may serve its queue: it holds the model, or may hold it and no other device does.
    pub(crate) fn may_run_on(&self, device: usize) -> bool {
        self.is_resident(device) || (self.replica(device).is_some() && self.is_absent() && self.model().is_some())
    }

    pub(crate) fn devices(&self) -> impl Iterator<Item = usize> {
        self.replicas.iter().map(|(device, _)| *device)
    }

    pub(crate) fn is_ordered(&self, device: usize) -> bool {
        self.replica(device) == Some(Replica::Ordered)
    }

    /// Why requests are not to load it at `now`: that failed a moment ago.
    pub(crate) fn pause(&self, now: Instant) -> Option<&str> {
        let failure = self.failure.as_ref().filter(|failure| failure.is_paused(now) && !self.any(Replica::Resident));
        failure.filter(|failure| failure.open_error.is_none()).map(|failure| failure.reason.as_str())
    }

    /// When it is tried again by itself: the last attempt failed, and readiness waits for it.
    pub(crate) fn retry_at(&self) -> Option<Instant> {
        let has_failed = self.awaited && matches!(self.state(), ModelState::Failed(_));
        self.schedule.due().filter(|_| has_failed)
    }

    // The files.

    /// Begins to open the files for a request, unless that is done, under way, or failed a moment ago.
    pub(super) fn fetch(&mut self, retry: Retry, now: Instant) -> Option<Fetch> {
        let is_paused = self.failure.as_ref().is_some_and(|failure| failure.is_paused(now));
        let waits = retry == Retry::AfterPause && is_paused;
        (matches!(self.files, FilesState::Closed) && !waits && !self.removed).then(|| self.begin_fetch(None))
    }

    /// Begins to open the files for a load by hand, which is to see what has changed on disk. Nothing happens while a device
    /// holds the model or a request has work for it: then it stays what it is.
    pub(super) fn refresh(&mut self) -> Option<Fetch> {
        match &self.files {
            FilesState::Closed => Some(self.begin_fetch(None)),
            FilesState::Opened(model) if self.is_absent() && !self.is_in_use() => {
                let previous = Arc::clone(model);
                Some(self.begin_fetch(Some(previous)))
            }
            FilesState::Opened(_) | FilesState::Fetching(_) => None,
        }
    }

    /// Tries it again where that is due. What is to be opened first is given back: also after a failed load, for its files may
    /// have been repaired.
    pub(super) fn retry(&mut self, now: Instant) -> Option<Fetch> {
        self.retry_at().filter(|at| *at <= now)?;
        let fetch = self.refresh();
        if fetch.is_none() {
            self.order_all();
        }
        fetch
    }

    fn begin_fetch(&mut self, previous: Option<Arc<Model>>) -> Fetch {
        let fetch = Fetch { progress: Arc::default(), previous };
        (self.files, self.failure) = (FilesState::Fetching(fetch.clone()), None);
        fetch
    }

    /// Ends an attempt to open the files. An awaited model is ordered on all its devices.
    pub(super) fn finish_fetch(
        &mut self,
        fetch: &Fetch,
        result: Result<Arc<Model>, OpenError>,
        now: Instant,
        took: Duration,
    ) {
        let is_this = self.progress().is_some_and(|progress| Arc::ptr_eq(progress, &fetch.progress));
        if !is_this {
            return;
        }
        // A request that came meanwhile has ids for the files of before, so the model stays what it was; where its files have
        // changed, loading it fails and says so.
        let kept = fetch.previous.as_ref().filter(|_| self.is_in_use() || !self.is_absent());
        let result = kept.map_or(result, |previous| Ok(Arc::clone(previous)));
        match result {
            Ok(model) => {
                (self.files, self.failure) = (FilesState::Opened(model), None);
                let wanted = self.awaited || !self.load_waiters.is_empty();
                if wanted && !self.draining {
                    self.order_all();
                }
            }
            Err(error) => {
                self.files = FilesState::Closed;
                self.tell_loaders(&Err(LoadError::Failed(error.to_string())));
                self.fail(error.to_string(), Some(error), now, took);
            }
        }
    }

    // Its place on the devices.

    /// Adds one who waits until all replicas have come: now where they are there, else when the files are open and every
    /// device has loaded the model or failed to.
    pub(super) fn order(&mut self, waiter: oneshot::Sender<Result<(), LoadError>>) {
        self.load_waiters.push(waiter);
        if matches!(self.files, FilesState::Opened(_)) {
            self.order_all();
            self.tell_if_settled();
        }
    }

    fn order_all(&mut self) {
        if !self.is_coming() {
            self.failure = None;
        }
        self.awaited = self.declaration.eager;
        for (_, replica) in &mut self.replicas {
            if *replica == Replica::Absent {
                *replica = Replica::Ordered;
            }
        }
    }

    /// Begins to load on the device; an eager model that a request loads is ordered on its others as well, and so is one that
    /// is served elsewhere.
    pub(crate) fn begin_load(&mut self, device: usize) -> Option<Arc<Model>> {
        let model = Arc::clone(self.model()?);
        // Where this device was ordered, so were the others; those that have failed meanwhile wait for the next attempt. A server
        // elsewhere costs nothing here, and takes over what another one does not answer.
        let everywhere = self.declaration.eager || model.local.is_none();
        if everywhere && !self.draining && !self.is_ordered(device) {
            self.order_all();
        } else if !self.is_coming() {
            self.failure = None;
        }
        self.set(device, Replica::Loading);
        Some(model)
    }

    /// Ends loading on the device; when no replica is to come any more, whoever waits is told.
    pub(crate) fn finish_load(&mut self, device: usize, result: Result<(), String>, now: Instant, took: Duration) {
        match result {
            Ok(()) => {
                self.set(device, Replica::Resident);
                self.loaded_at = Some(now);
                self.schedule = RetrySchedule::default();
            }
            Err(reason) => {
                self.set(device, Replica::Absent);
                self.fail(reason, None, now, took);
            }
        }
        self.tell_if_settled();
    }

    fn fail(&mut self, reason: String, open_error: Option<OpenError>, now: Instant, took: Duration) {
        self.schedule.failed(now, took);
        self.failure = Some(ModelFailure::new(reason, open_error, now, took));
    }

    pub(crate) fn leave(&mut self, device: usize) {
        self.set(device, Replica::Absent);
        if !self.any(Replica::Resident) {
            // Another replica's old failure is not why it is gone.
            (self.failure, self.schedule) = (None, RetrySchedule::default());
            self.loaded_at = None;
        }
    }

    // Its end.

    /// Refuses new requests from now on; the model is dropped when there is no work left for it. Orders are withdrawn, and
    /// who waits for a load is told.
    pub(super) fn drain(&mut self, waiter: oneshot::Sender<()>, remove: bool) {
        self.awaited = false;
        self.draining = true;
        self.removed |= remove;
        self.unload_waiters.push(waiter);
        self.withdraw();
        self.tell_loaders(&Err(LoadError::Unloading));
        if let (true, Some(progress)) = (remove, self.progress()) {
            progress.cancel();
        }
    }

    pub(crate) fn is_drained(&self) -> bool {
        self.draining && self.is_absent() && !self.is_in_use()
    }

    /// Ends its draining, and tells who waits for that.
    pub(super) fn finish_drain(&mut self) {
        self.draining = false;
        (self.failure, self.schedule) = (None, RetrySchedule::default());
        // Waiters that no longer listen need not know.
        self.unload_waiters.drain(..).for_each(|waiter| _ = waiter.send(()));
    }

    pub(super) fn withdraw(&mut self) {
        for (_, replica) in &mut self.replicas {
            if *replica == Replica::Ordered {
                *replica = Replica::Absent;
            }
        }
    }

    /// Lets go of those who wait for a load; they find out why for themselves.
    pub(super) fn forget_loaders(&mut self) {
        self.load_waiters.clear();
    }

    /// As [`Lifecycle::forget_loaders`], for all who wait.
    pub(super) fn forget_waiters(&mut self) {
        self.forget_loaders();
        self.unload_waiters.clear();
    }

    pub(super) fn lease(&self) -> Lease {
        Lease::new(&self.usage)
    }

    fn tell_if_settled(&mut self) {
        if !self.any(Replica::Absent) && !self.is_coming() {
            // A failure of before was made good.
            self.failure = None;
        }
        if !self.is_coming() {
            let outcome =
                self.failure.as_ref().map_or(Ok(()), |failure| Err(LoadError::Failed(failure.reason.clone())));
            self.tell_loaders(&outcome);
        }
    }

    fn tell_loaders(&mut self, outcome: &Result<(), LoadError>) {
        for waiter in self.load_waiters.drain(..) {
            let _ = waiter.send(outcome.clone());
        }
    }

    fn is_coming(&self) -> bool {
        self.any(Replica::Ordered) || self.any(Replica::Loading)
    }

    fn any(&self, wanted: Replica) -> bool {
        self.replicas.iter().any(|(_, replica)| *replica == wanted)
    }

    fn replica(&self, device: usize) -> Option<Replica> {
        self.replicas.iter().find(|(index, _)| *index == device).map(|(_, replica)| *replica)
    }

    fn set(&mut self, device: usize, to: Replica) {
        if let Some((_, replica)) = self.replicas.iter_mut().find(|(index, _)| *index == device) {
            *replica = to;
        }
    }
}
