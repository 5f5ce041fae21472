//! One model's lifecycle: where it is loaded, where it is to be, and who waits for that.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::news::{LoadWaiter, News, UnloadWaiter};
use crate::engine::device::Entry;
use crate::engine::status::ModelState;
use crate::engine::{LoadError, ModelSlot, ModelSource};

/// Where a model stands on one of its devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Replica {
    /// Not there, and nobody has asked for it.
    Out,
    /// To be loaded when the device comes to it.
    Ordered,
    Loading,
    Resident,
}

/// Why a model is not there, and until when requests are not to try it again.
#[derive(Debug)]
struct Failed {
    reason: String,
    retry_at: Option<Instant>,
}

/// The lifecycle of one model.
#[derive(Debug)]
pub(in crate::engine) struct ModelBooks {
    /// By device.
    replicas: Vec<(usize, Replica)>,
    source: Option<Arc<ModelSource>>,
    eager: bool,
    /// Whether it is to be loaded when it is registered: eager, and nobody has unloaded it by hand.
    awaited: bool,
    draining: bool,
    /// Requests that have been let in and are not yet queued to their end.
    leases: usize,
    failed: Option<Failed>,
    loaded_at: Option<Instant>,
    load_waiters: Vec<LoadWaiter>,
    unload_waiters: Vec<UnloadWaiter>,
    news: Vec<News>,
}

impl ModelBooks {
    pub(super) fn new(slot: &ModelSlot) -> Self {
        Self {
            replicas: slot.devices.iter().map(|device| (*device, Replica::Out)).collect(),
            source: None,
            eager: slot.eager,
            awaited: slot.eager,
            draining: false,
            leases: 0,
            failed: None,
            loaded_at: None,
            load_waiters: Vec::new(),
            unload_waiters: Vec::new(),
            news: Vec::new(),
        }
    }

    /// The state to publish. A model with one replica loaded is ready, whatever the others do.
    pub(in crate::engine) fn state(&self) -> ModelState {
        let awaited = self.awaited && self.source.is_none() && self.failed.is_none();
        if self.draining {
            ModelState::Draining
        } else if self.any(Replica::Resident) {
            ModelState::Ready
        } else if self.is_coming() || awaited {
            ModelState::Loading
        } else if let Some(failed) = &self.failed {
            ModelState::Failed(failed.reason.clone())
        } else {
            ModelState::Unloaded
        }
    }

    /// The devices that hold it.
    pub(in crate::engine) fn resident(&self) -> Vec<usize> {
        let resident = self.replicas.iter().filter(|(_, replica)| *replica == Replica::Resident);
        resident.map(|(device, _)| *device).collect()
    }

    /// When it was last loaded, while it is.
    pub(in crate::engine) fn loaded_at(&self) -> Option<Instant> {
        self.loaded_at
    }

    pub(in crate::engine) fn is_resident(&self, device: usize) -> bool {
        self.replica(device) == Some(Replica::Resident)
    }

    pub(in crate::engine) fn source(&self) -> Option<&Arc<ModelSource>> {
        self.source.as_ref()
    }

    pub(in crate::engine) fn is_draining(&self) -> bool {
        self.draining
    }

    pub(in crate::engine) fn is_leased(&self) -> bool {
        self.leases > 0
    }

    /// Whether it is nowhere, and nobody has asked for it.
    pub(super) fn is_out(&self) -> bool {
        self.replicas.iter().all(|(_, replica)| *replica == Replica::Out)
    }

    /// Whether the device may serve its queue: it holds the model, or has it and nobody else does.
    pub(super) fn may_run_on(&self, device: usize) -> bool {
        self.is_resident(device) || (self.replica(device).is_some() && self.is_out())
    }

    /// Whether the device is one of its own.
    pub(super) fn lives_on(&self, device: usize) -> bool {
        self.replica(device).is_some()
    }

    /// The devices it may be loaded to.
    pub(super) fn devices(&self) -> impl Iterator<Item = usize> {
        self.replicas.iter().map(|(device, _)| *device)
    }

    /// Why requests are not to load it at `now`: that failed a moment ago.
    pub(in crate::engine) fn pause(&self, now: Instant) -> Option<&str> {
        let failed = self.failed.as_ref().filter(|failed| failed.retry_at.is_some_and(|retry_at| now < retry_at))?;
        (!self.any(Replica::Resident)).then_some(&failed.reason)
    }

    /// Notes that a request enters or leaves the way to the queue.
    pub(in crate::engine) fn lease(&mut self) {
        self.leases += 1;
    }

    pub(in crate::engine) fn give_back(&mut self) {
        self.leases = self.leases.saturating_sub(1);
    }

    /// Makes the source known. An awaited model is ordered.
    pub(in crate::engine) fn open(&mut self, source: ModelSource) {
        let is_new = self.source.replace(Arc::new(source)).is_none();
        // A failed load is remembered for its pause; a failed opening is healed by this one.
        if is_new || self.failed.as_ref().is_some_and(|failed| failed.retry_at.is_none()) {
            self.failed = None;
        }
        if self.awaited {
            self.order_all();
        }
    }

    /// Notes that its files could not be opened.
    pub(in crate::engine) fn fail_to_open(&mut self, reason: String) {
        self.failed = Some(Failed { reason, retry_at: None });
    }

    /// Orders all replicas; the waiter is told when they have come, now where they are there.
    pub(in crate::engine) fn order(&mut self, waiter: LoadWaiter) {
        self.order_all();
        self.load_waiters.push(waiter);
        self.tell_if_settled();
    }

    fn order_all(&mut self) {
        if !self.is_coming() {
            self.failed = None;
        }
        for (_, replica) in &mut self.replicas {
            if *replica == Replica::Out {
                *replica = Replica::Ordered;
            }
        }
    }

    /// Whether an order waits for the device.
    pub(super) fn is_ordered(&self, device: usize) -> bool {
        self.replica(device) == Some(Replica::Ordered)
    }

    /// Begins to load on the device; an eager model is ordered on its others as well.
    pub(super) fn begin(&mut self, device: usize) -> Option<Arc<ModelSource>> {
        let source = Arc::clone(self.source.as_ref()?);
        if self.eager && !self.draining {
            self.order_all();
        } else if !self.is_coming() {
            self.failed = None;
        }
        self.set(device, Replica::Loading);
        Some(source)
    }

    /// Ends loading on the device; when no replica is to come any more, whoever waits is told.
    pub(in crate::engine) fn end(&mut self, device: usize, result: Result<(), String>, now: Instant, took: Duration) {
        match result {
            Ok(()) => {
                self.set(device, Replica::Resident);
                self.loaded_at = Some(now);
            }
            Err(reason) => {
                self.set(device, Replica::Out);
                self.failed = Some(Failed { reason, retry_at: now.checked_add(took) });
            }
        }
        self.tell_if_settled();
    }

    /// Notes that the device holds it no more.
    pub(in crate::engine) fn leave(&mut self, device: usize) {
        self.set(device, Replica::Out);
        if !self.any(Replica::Resident) {
            // Another replica's old failure is not why it is gone.
            self.failed = None;
            self.loaded_at = None;
        }
    }

    /// Refuses new requests from now on and drops the model when there is no work left for it. Orders are withdrawn,
    /// and who waits for a load is told.
    pub(in crate::engine) fn drain(&mut self, waiter: UnloadWaiter) {
        self.awaited = false;
        self.draining = true;
        self.unload_waiters.push(waiter);
        self.withdraw();
        self.tell_loaders(&Err(LoadError::Unloading));
    }

    /// Ends the draining of a model that is nowhere any more and has no work.
    pub(super) fn settle(&mut self) {
        self.draining = false;
        self.failed = None;
        self.news.extend(self.unload_waiters.drain(..).map(News::Unloaded));
    }

    /// Withdraws what is ordered and not begun.
    pub(super) fn withdraw(&mut self) {
        for (_, replica) in &mut self.replicas {
            if *replica == Replica::Ordered {
                *replica = Replica::Out;
            }
        }
    }

    /// Lets go of those who wait for a load; they find out why for themselves.
    pub(super) fn forget_loaders(&mut self) {
        self.load_waiters.clear();
    }

    /// As [`ModelBooks::forget_loaders`], for all who wait.
    pub(super) fn forget_waiters(&mut self) {
        self.load_waiters.clear();
        self.unload_waiters.clear();
    }

    fn tell_if_settled(&mut self) {
        if !self.is_coming() {
            let outcome = self.failed.as_ref().map_or(Ok(()), |failed| Err(LoadError::Failed(failed.reason.clone())));
            self.tell_loaders(&outcome);
        }
    }

    fn tell_loaders(&mut self, outcome: &Result<(), LoadError>) {
        self.news.extend(self.load_waiters.drain(..).map(|waiter| News::Loaded(waiter, outcome.clone())));
    }

    /// Fails queued sequences.
    pub(super) fn fail(&mut self, entries: Vec<Entry>, reason: &str) {
        self.news.extend(entries.into_iter().map(|entry| News::Failed(entry, reason.to_owned())));
    }

    /// Tells those who wait what there is to tell; the board says the same by now.
    pub(in crate::engine) fn tell(&mut self) {
        for news in self.news.drain(..) {
            news.tell();
        }
    }

    /// Whether some replica is ordered or loading.
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
