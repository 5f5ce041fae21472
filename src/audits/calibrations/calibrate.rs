//! Scores known non-members at once, without a job.

use super::calibration::Calibration;
use crate::audits::error::AuditFailure;
use crate::audits::request::AuditRequest;
use crate::audits::run_event::RunEvent;
use crate::audits::sample_scoring::score_samples;
use crate::audits::stored_scores::ScoreHeader;
use crate::datasets::SampleBlocks;
use crate::scorer::Scorer;

/// Scores these samples by the methods of the request.
///
/// # Errors
/// [`AuditFailure`] where the model fails.
pub async fn calibrate(
    request: &AuditRequest,
    samples: SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<Calibration, AuditFailure> {
    let results = score_samples(request, &samples, scorer, progress).await?.results;
    Ok(Calibration::new(ScoreHeader::from(&results).into(), results.rows, Some(samples)))
}
