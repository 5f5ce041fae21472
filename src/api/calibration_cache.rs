//! Calibrations at hand.

use crate::audits::Calibration;
use moka::sync::Cache;
use std::sync::Arc;
use uuid::Uuid;

/// Maximum number of scores in the cache of calibrations; about 100 MB.
const MOST_SCORES: u64 = 4_000_000;

/// Calibrations that were used lately; cheap to clone.
#[derive(Clone)]
pub struct CalibrationCache(Cache<Uuid, Arc<Calibration>>);

impl Default for CalibrationCache {
    fn default() -> Self {
        let weigher =
            |_: &Uuid, calibration: &Arc<Calibration>| u32::try_from(calibration.weight()).unwrap_or(u32::MAX);
        Self(Cache::builder().max_capacity(MOST_SCORES).weigher(weigher).build())
    }
}

impl CalibrationCache {
    /// The calibration of this id, if it is at hand.
    pub fn get(&self, id: Uuid) -> Option<Arc<Calibration>> {
        self.0.get(&id)
    }

    /// Keeps a calibration at hand.
    pub fn insert(&self, id: Uuid, calibration: Arc<Calibration>) {
        self.0.insert(id, calibration);
    }
}
