//! Runs one test: every sample through the scorer, then the report. The service and the command line share it.

use super::document::TestReport;
use super::report::test_report;
use super::request::TestRequest;
use crate::audits::error::AuditFailure;
use crate::audits::run_event::RunEvent;
use crate::audits::sample_scoring::score_samples;
use crate::datasets::SampleBlocks;
use crate::scorer::Scorer;
use std::sync::Arc;

/// Runs a test of these samples, and tells `progress` how far it is. Dropping the future cancels it, and to run the request again
/// resumes it: what was scored before comes from the cache of statistics.
///
/// # Errors
/// [`AuditFailure`] where the model or the service fails; what is wrong with one text is part of the report.
pub async fn run_test(
    request: Arc<TestRequest>,
    samples: &SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<TestReport, AuditFailure> {
    let scored = score_samples(&request.scoring, samples, scorer, &progress).await?;
    progress(RunEvent::Testing);
    // Permutations over many documents are no work for the async runtime's threads.
    scorer.workers().run_behind(move |wanted| test_report(&request, scored, wanted)).await?
}
