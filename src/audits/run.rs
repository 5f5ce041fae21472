//! Runs one audit: every sample through the scorer, then the report. The service and the command line share it.

use super::calibrations::Calibration;
use super::decisions::comparability_with_calibration;
use super::error::AuditFailure;
use super::report::{AuditReport, build_report};
use super::request::AuditRequest;
use super::result_evidence::add_evidence;
use super::results::AuditResults;
use super::run_event::RunEvent;
use super::sample_scoring::score_samples;
use crate::datasets::SampleBlocks;
use crate::scorer::Scorer;
use std::sync::Arc;

/// An audit that has been run.
#[derive(Clone, Debug)]
pub struct AuditOutcome {
    pub report: AuditReport,
    pub results: AuditResults,
}

/// Runs an audit of these samples, with the calibration that it names, and tells `progress` how far it is. Dropping the future cancels the audit at once, and to run
/// the request again resumes it: what was scored before comes from the cache of statistics.
///
/// # Errors
/// [`AuditFailure`] where the model or the service fails; what is wrong with one sample is part of the report.
pub async fn run(
    request: Arc<AuditRequest>,
    samples: &SampleBlocks,
    calibration: Option<Calibration>,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<AuditOutcome, AuditFailure> {
    let mut scored = score_samples(&request, samples, scorer, &progress).await?;
    progress(RunEvent::Testing);
    let labelled = scored.results.rows.iter().any(|row| row.member.is_some());
    let comparability = match &calibration {
        // Where there are labels, the two classes are compared instead.
        Some(calibration) if !labelled => {
            comparability_with_calibration(samples, &scored.results.rows, calibration, scorer.workers()).await?
        }
        _ => None,
    };
    // Sorting and resampling the scores of many samples and methods is no work for the async runtime's threads.
    let report = move |wanted: &dyn Fn() -> bool| {
        add_evidence(&request, &mut scored, calibration.as_ref(), comparability, wanted)?;
        let report = build_report(&request, &scored.results, wanted)?;
        Ok(AuditOutcome { report, results: scored.results })
    };
    scorer.workers().run_behind(report).await?
}
