//! The pool that runs the models: requests for statistics of token sequences in,
//! [`TokenStats`](crate::token_stats::TokenStats) out; or, for a masked model, blanks in and what could stand there out.
//!
//! One thread per device loads, runs and drops all models of that device; everything else only talks to them through a
//! queue that they share. A request passes four stations:
//!
//! 1. `plan`: equal sequences are merged, those in the `cache` answered;
//! 2. `admission`: the rest is let in whole or refused, by tokens and by the time it would take;
//! 3. `batch`: whenever a device is free, the oldest sequences that it may run form a batch; there is no waiting for
//!    more, for a batch grows while the device is busy;
//! 4. `device`: the batch runs, results go back through the request's `ticket`.
//!
//! A model is declared at start and opened outside the engine, which learns of it by [`Engine::register`]. From then on
//! `books` keeps where it is loaded and where it is to be, `memory` says who makes room for whom, and `calibration` what token
//! budget suits it:
//!
//! ```text
//! unloaded -> loading -> ready -> draining -> unloaded     by hand: load, unload
//!                |         '--------------------^          by eviction
//!                '-> failed                                tried again by a request after a pause, by hand at once
//! ```
//!
//! Invariants:
//!
//! - the queue is never full: what is in it was admitted before, and no path that a client can reach panics;
//! - every admitted sequence is answered, dropped because its request no longer wants it, or lost with the engine,
//!   and in each case what it held goes back;
//! - a load or a forward pass keeps one device busy and no other, and no lock is held while it lasts;
//! - health is read from facts that the device threads write, never asked through the queue;
//! - a lost device is the end of the whole engine.

mod admission;
mod batch;
mod books;
mod cache;
mod calibration;
mod device;
mod error;
mod lifecycle;
mod memory;
mod meters;
mod plan;
mod requests;
mod shared;
mod status;
mod task;
mod ticket;
mod work;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use error::{EngineError, LoadError, Refusal, StartError, UnknownModel, UnloadError};
pub use status::{DeviceStatus, EngineStatus, ModelState, ModelStatus};
pub use task::Request;
pub use ticket::{Output, Ticket};
pub use work::{
    ActivationBytes, Calibration, Class, DeviceSlot, DiskCache, EngineSettings, FillWork, KnownBudgets, Load,
    ModelSlot, ModelSource, Stats, Work,
};

use books::Books;
use shared::Shared;

/// The handle of the engine; clones are handles of the same one.
///
/// When the last handle is gone, the device threads finish what is queued and end on their own;
/// [`Engine::shutdown`] is the way to wait for that.
#[derive(Debug, Clone)]
pub struct Engine(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.change(Books::finish);
    }
}

impl Engine {
    /// Starts the device threads and returns at once. Models are loaded behind it, once they are registered. Metrics
    /// go to the recorder installed now.
    ///
    /// # Errors
    /// [`StartError`] where the operating system refuses the threads, or a model names no device, one that is not
    /// there, or one twice.
    pub fn start(
        models: Vec<ModelSlot>,
        devices: Vec<DeviceSlot>,
        settings: EngineSettings,
    ) -> Result<Self, StartError> {
        if let Some(model) = models.iter().find(|model| !model.has_a_place(devices.len())) {
            let (id, places, count) = (&model.id, &model.devices, devices.len());
            return Err(StartError(format!("model `{id}` cannot be on the devices {places:?} of {count}")));
        }
        let shared = Arc::new(Shared::new(models, &devices, &settings));
        // Where a later thread cannot be had, dropping this ends the earlier ones.
        let inner = Inner { shared, threads: Mutex::default() };
        for (index, slot) in devices.into_iter().enumerate() {
            let thread = device::spawn(index, slot, Arc::clone(&inner.shared))?;
            inner.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(Self(Arc::new(inner)))
    }

    /// The engine at a glance.
    pub fn status(&self) -> EngineStatus {
        self.0.shared.status()
    }

    /// Whether requests are served as configured: all device threads run, every eager model is loaded or was unloaded
    /// by hand, the engine does not shut down.
    pub fn is_ready(&self) -> bool {
        let open = !self.0.shared.gate.is_closed();
        let facts = self.0.shared.board.read();
        open && facts.alive() && facts.lost.is_none() && facts.loaded()
    }

    /// Waits until every eager model is loaded, on one of its devices at least, or was unloaded by hand.
    ///
    /// # Errors
    /// The failure of the first eager model that cannot be opened or loaded, or what else ended the engine.
    pub async fn wait_until_loaded(&self) -> Result<(), EngineError> {
        let shared = &self.0.shared;
        let answer = |facts: &status::Facts| {
            if let Some((model, reason)) = facts.failed() {
                let id = &shared.models[model].id;
                Some(Err(EngineError::ModelFailed(format!("{id}: {reason}"))))
            } else if facts.loaded() {
                Some(Ok(()))
            } else if let Some(reason) = &facts.lost {
                Some(Err(EngineError::DeviceLost(reason.clone())))
            } else if !facts.alive() {
                Some(Err(EngineError::ShuttingDown))
            } else {
                None
            }
        };
        shared.board.wait_for(answer).await
    }

    /// Waits until a device is lost, and says why; for ever where none ever is. Only a new process can help then.
    pub async fn device_lost(&self) -> String {
        self.0.shared.board.wait_for(|facts| facts.lost.clone()).await
    }

    /// Stops admitting, lets the device threads finish what is queued for at most `grace`, and waits for their end:
    /// what has not started by then fails with [`EngineError::ShuttingDown`]; the forward passes in flight, which
    /// nothing can stop, are waited for. Then the cache on disk is written and closed. Blocks. Calling it again waits for
    /// the same end.
    pub fn shutdown(&self, grace: Duration) {
        self.0.shared.gate.close();
        let until = Instant::now().checked_add(grace);
        let mut threads = self.0.threads.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.shared.finish(until);
        for thread in threads.drain(..) {
            // Fails only where the thread panicked outside of all that is caught, and then it has ended as well.
            let _ = thread.join();
        }
        self.0.shared.cache.close();
    }
}
