//! Memory budget shared by all request bodies that are being read.

use super::problem::{Kind, Problem};
use crate::telemetry::names;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes per unit of the budget.
const UNIT: u64 = 1 << 10;
/// Bodies that may be read at once where the settings say `auto`, if all are as long as they may be.
const AUTO_BODIES: u64 = 8;

/// Memory budget shared by all request bodies that are being read; cheap to clone.
#[derive(Clone, Debug)]
pub struct BodyBudget {
    units: Arc<Semaphore>,
}

/// The part of one body. It is given back when dropped.
#[derive(Debug)]
pub struct BodyShare {
    units: Arc<Semaphore>,
    taken: Option<OwnedSemaphorePermit>,
}

impl BodyBudget {
    /// Creates a budget of `bytes`, by default for `AUTO_BODIES` bodies of `limit` bytes; never less than one body.
    #[must_use]
    pub fn new(bytes: Option<u64>, limit: u64) -> Self {
        let bytes = bytes.unwrap_or_else(|| limit.saturating_mul(AUTO_BODIES)).max(limit);
        let units = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX).min(u32::MAX as usize);
        Self { units: Arc::new(Semaphore::new(units.min(Semaphore::MAX_PERMITS))) }
    }

    /// Returns the share of a body that has not been read yet.
    #[must_use]
    pub fn begin(&self) -> BodyShare {
        BodyShare { units: Arc::clone(&self.units), taken: None }
    }
}

impl BodyShare {
    /// Grows the share to `bytes`; refused while other bodies have the room.
    pub fn grow(&mut self, bytes: u64) -> Result<(), Problem> {
        let wanted = usize::try_from(bytes.div_ceil(UNIT)).unwrap_or(usize::MAX);
        let more = wanted.saturating_sub(self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        if more == 0 {
            return Ok(());
        }
        let full = || Problem::new(Kind::Unavailable, "as many bodies are being read as `server.body_memory` allows");
        let permits = u32::try_from(more).map_err(|_| full())?;
        let permits = Arc::clone(&self.units).try_acquire_many_owned(permits).map_err(|_| full())?;
        metrics::gauge!(names::HTTP_BODY_BYTES).increment((more as u64 * UNIT) as f64);
        match &mut self.taken {
            Some(taken) => taken.merge(permits),
            None => self.taken = Some(permits),
        }
        Ok(())
    }
}

impl Drop for BodyShare {
    fn drop(&mut self) {
        let units = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        metrics::gauge!(names::HTTP_BODY_BYTES).decrement((units as u64 * UNIT) as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_share_the_room_and_give_it_back() {
        let budget = BodyBudget::new(Some(10 * UNIT), 4 * UNIT);
        let [mut first, mut second] = [budget.begin(), budget.begin()];
        assert!(first.grow(4 * UNIT).is_ok() && first.grow(1).is_ok(), "there is room for it already");
        assert!(second.grow(6 * UNIT - 1).is_ok() && second.grow(6 * UNIT + 1).is_err());
        drop(first);
        assert!(second.grow(10 * UNIT).is_ok() && budget.begin().grow(1).is_err());
        drop(second);
        assert!(budget.begin().grow(10 * UNIT).is_ok());
    }

    #[test]
    fn one_body_always_has_room() {
        assert!(BodyBudget::new(Some(1), 4 * UNIT).begin().grow(4 * UNIT).is_ok());
        assert!(BodyBudget::new(None, 4 * UNIT).begin().grow(32 * UNIT).is_ok());
    }
}
