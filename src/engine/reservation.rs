//! Memory of a device that is taken by work outside of the engine, such as tuning.

use super::class::Class;
use super::handle::Engine;
use super::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory of a device that models may not take; given back when this is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    shared: Arc<Shared>,
    device: usize,
    bytes: u64,
}

/// A device has too little memory.
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
    #[must_use]
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

impl Engine {
    /// Takes `needed` bytes of a device's memory away from its models. Models that are there stay there.
    ///
    /// # Errors
    /// Where the device has less beside what it holds.
    pub fn reserve_memory(&self, device: usize, needed: u64) -> Result<MemoryReservation, MemoryShortage> {
        let shared = Arc::clone(self.shared());
        let (name, budget) = shared.memory_of(device);
        let models = shared.working_bytes(device, ROOM_OF_BATCH);
        let room = budget.saturating_sub(models);
        take(shared.reserved(device), needed, room).map_err(|reserved| MemoryShortage {
            device: name.to_owned(),
            needed,
            budget,
            models,
            reserved,
        })?;
        shared.pool.signal().raise();
        Ok(MemoryReservation { shared, device, bytes: needed })
    }

    /// Returns true if somebody waits for an answer to an interactive request.
    #[must_use]
    pub fn has_interactive_work(&self) -> bool {
        self.shared().gate.tokens(Class::Interactive) > 0
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
