//! The handle of the engine, and memory of its devices that is taken by work outside of it, such as tuning.

use super::cache::StatisticsHold;
use super::device;
use super::error::{EngineError, StartError};
use super::request::Class;
use super::shared::Shared;
use super::status::EngineStatus;
use super::{DeviceSlot, EngineOptions};
use crate::pool::{Lifecycle, ModelState, Pool};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The handle of the engine; clones are handles of the same one.
///
/// When the last handle is gone, the device threads finish what is queued and end on their own;
/// [`Engine::shutdown`] is the way to wait for that.
#[derive(Debug, Clone)]
pub struct Engine(Arc<EngineInner>);

#[derive(Debug)]
struct EngineInner {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Drop for EngineInner {
    fn drop(&mut self) {
        self.shared.finish_behind();
    }
}

impl Engine {
    /// Starts the device threads and returns at once. Models of the pool are loaded behind it, once their files are open.
    /// Metrics go to the recorder installed now.
    pub fn start(pool: Pool, devices: Vec<DeviceSlot>, settings: EngineOptions) -> Result<Self, StartError> {
        let shared = Arc::new(Shared::new(pool, &devices, &settings));
        // Where a later thread cannot be had, dropping this ends the earlier ones.
        let inner = EngineInner { shared, threads: Mutex::default() };
        for (index, slot) in devices.into_iter().enumerate() {
            let thread = device::spawn(index, slot, Arc::clone(&inner.shared))?;
            inner.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        }
        Ok(Self(Arc::new(inner)))
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.0.shared
    }

    pub fn pool(&self) -> &Pool {
        &self.shared().pool
    }

    pub fn status(&self) -> EngineStatus {
        self.shared().status()
    }

    /// Returns true if requests are served as configured: all device threads run, every eager model is loaded or was unloaded by
    /// hand, the engine does not shut down.
    pub fn is_ready(&self) -> bool {
        self.shared().is_ready()
    }

    /// Waits until every eager model is loaded, on one of its devices at least, or was unloaded by hand.
    pub async fn wait_until_loaded(&self) -> Result<(), EngineError> {
        self.pool().signal().wait_for(|| self.loaded()).await
    }

    /// Waits until no eager model is being opened or loaded. Models that nobody has begun to open, as in a command that uses one model
    /// alone, are not waited for.
    pub async fn wait_for_eager_loads(&self) {
        let is_loading = |model: &Lifecycle| {
            model.is_missing()
                && matches!(model.state(), ModelState::Fetching | ModelState::Opened | ModelState::Loading)
        };
        let are_over = || {
            let facts = self.shared().facts();
            let can_load = facts.device_lost.is_none() && facts.device_alive();
            !can_load || !self.pool().lock().iter().any(|(_, model)| is_loading(model))
        };
        self.pool().signal().wait_for(|| are_over().then_some(())).await
    }

    /// Waits until requests are served as configured; for ever where they never are.
    pub async fn wait_until_ready(&self) {
        self.pool().signal().wait_for(|| self.is_ready().then_some(())).await
    }

    /// Returns `Ok` once every eager model is loaded, or why that will not happen; `None` while it is under way.
    fn loaded(&self) -> Option<Result<(), EngineError>> {
        let mut missing = false;
        for (id, model) in self.pool().lock().iter() {
            if let (true, ModelState::Failed(reason)) = (model.is_missing(), model.state()) {
                return Some(Err(EngineError::LoadFailed(format!("{id}: {reason}"))));
            }
            missing |= model.is_missing();
        }
        if !missing {
            return Some(Ok(()));
        }
        let facts = self.shared().facts();
        match &facts.device_lost {
            Some(reason) => Some(Err(EngineError::DeviceLost(reason.clone()))),
            None if !facts.device_alive() => Some(Err(EngineError::ShuttingDown)),
            None => None,
        }
    }

    /// Waits until a device is lost, and says why; for ever where none ever is. Only a new process can help then.
    pub async fn device_lost(&self) -> String {
        self.pool().signal().wait_for(|| self.shared().facts().device_lost.clone()).await
    }

    /// Begins work whose statistics on disk do not make room for others until it is over. `resumed` says that it began in an
    /// earlier process, and so needs those that are there already.
    pub fn hold_statistics(&self, resumed: bool) -> StatisticsHold {
        self.shared().cache.hold(resumed)
    }

    /// Drops the statistics in memory that were computed under an identity which ends with `suffix`.
    pub fn forget_statistics(&self, suffix: Arc<str>) {
        self.shared().cache.forget(suffix);
    }

    /// Stops admitting, lets the device threads finish what is queued for at most `grace`, and waits for their end:
    /// what has not started by then fails with [`EngineError::ShuttingDown`]; the forward passes in flight, which
    /// nothing can stop, are waited for. Then the cache on disk is written and closed. Blocks. Calling it again waits for
    /// the same end.
    pub fn shutdown(&self, grace: Duration) {
        self.shared().gate.close();
        let until = Instant::now().checked_add(grace);
        let mut threads = self.0.threads.lock().unwrap_or_else(PoisonError::into_inner);
        self.shared().finish(until);
        for thread in threads.drain(..) {
            // Fails only where the thread panicked outside of all that is caught, and then it has ended as well.
            let _ = thread.join();
        }
        self.shared().cache.close();
    }

    /// Takes `needed` bytes of a device's memory away from its models. Models that are there stay there.
    pub fn reserve_memory(&self, device: usize, needed: u64) -> Result<MemoryReservation, MemoryShortage> {
        let shared = Arc::clone(self.shared());
        let (name, budget) = {
            let device = &shared.facts().devices[device];
            (device.name.clone(), device.memory_budget)
        };
        let models = shared.working_bytes(device, ROOM_OF_BATCH);
        let room = budget.saturating_sub(models);
        take(shared.reserved(device), needed, room).map_err(|reserved| MemoryShortage {
            device: name,
            needed,
            budget,
            models,
            reserved,
        })?;
        shared.pool.signal().raise();
        Ok(MemoryReservation { shared, device, bytes: needed })
    }

    /// Returns true if somebody waits for an answer to an interactive request.
    pub fn has_interactive_work(&self) -> bool {
        self.shared().gate.tokens(Class::Interactive) > 0
    }
}

/// Memory of a device that models may not take; given back when this is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    shared: Arc<Shared>,
    device: usize,
    bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "needs {needed} bytes; device `{device}` has {budget}, of which models and a batch of them take {models}, and other \
     fine-tunes {reserved}"
)]
pub struct MemoryShortage {
    pub device: String,
    pub needed: u64,
    pub budget: u64,
    pub models: u64,
    pub reserved: u64,
}

impl MemoryShortage {
    /// Returns true if there is enough once others have given back theirs.
    pub fn passes(&self) -> bool {
        self.reserved > 0 && self.needed <= self.budget.saturating_sub(self.models)
    }
}

/// Number of tokens of a batch that has room beside what is reserved: fewer would take longer to read the weights than to
/// compute.
const ROOM_OF_BATCH: usize = 512;

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.shared.reserved(self.device).fetch_sub(self.bytes, Ordering::AcqRel);
        self.shared.pool.signal().raise();
    }
}

/// Adds to what is reserved, where that stays within the room; what is reserved by others, where it does not.
fn take(reserved: &AtomicU64, needed: u64, room: u64) -> Result<(), u64> {
    let within = |reserved: u64| reserved.checked_add(needed).filter(|sum| *sum <= room);
    reserved.fetch_update(Ordering::AcqRel, Ordering::Acquire, within).map(drop)
}

#[cfg(test)]
mod tests {
    use super::take;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn no_more_is_taken_than_there_is() {
        let reserved = AtomicU64::new(0);
        assert_eq!(take(&reserved, 60, 100), Ok(()));
        assert_eq!(take(&reserved, 60, 100), Err(60));
        assert_eq!(take(&reserved, u64::MAX, 100), Err(60));
        assert_eq!(take(&reserved, 40, 100), Ok(()));
        assert_eq!(reserved.load(Ordering::Relaxed), 100);
    }
}
