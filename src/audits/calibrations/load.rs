//! Calibrations as they are in the store.

use super::calibration::Calibration;
use crate::audits::error::AuditError;
use crate::audits::stored_scores::StoredScores;
use crate::datasets::SampleBlocks;
use crate::store::Store;
use uuid::Uuid;

/// Reads the calibration of this id; returns `None` if there is none that has succeeded.
///
/// # Errors
/// [`AuditError::Store`] or [`AuditError::Internal`].
pub async fn load(store: &Store, id: Uuid) -> Result<Option<Calibration>, AuditError> {
    let Some(stored) = StoredScores::open(store, id).await? else { return Ok(None) };
    let (mut rows, mut block) = (Vec::with_capacity(stored.header.rows), 0);
    while let Some(more) = stored.block(block).await? {
        rows.extend(more);
        block += 1;
    }
    let samples = store.dataset_of(id).await?.and_then(|dataset| SampleBlocks::stored(store, &dataset));
    Ok(Some(Calibration::new(stored.header, rows, samples)))
}
