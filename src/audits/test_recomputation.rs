//! Recomputation of the report of a test of two lists, from the scores of an audit of the same texts by the same methods and control.

use super::error::AuditFailure;
use super::membership_tests::{Commitment, TestKind, TestLayout, TestReport, TestRequest, test_report};
use super::recomputation::{ClaimedReport, RecomputationError, RecomputedReport, ScoredTexts};
use crate::scorer::Workers;
use serde::Deserialize;
use serde_json::Value;

/// The parts of a test's report that its recomputation begins with, beside those of an audit's.
#[derive(Deserialize)]
struct ClaimedTest {
    kind: TestKind,
    inference: Option<ClaimedInference>,
    commitment: Option<Commitment>,
}

#[derive(Deserialize)]
struct ClaimedInference {
    seed: u64,
}

/// Computes the report anew, from its request, and the samples if they are given. Suspects are labelled members.
///
/// # Errors
/// [`RecomputationError`] if the report is not of such a test, or the lines are not those of an audit like it.
pub async fn recompute_test(
    report: &Value,
    texts: ScoredTexts<'_>,
    workers: &Workers,
) -> Result<RecomputedReport<TestReport>, RecomputationError> {
    let claimed = ClaimedReport::deserialize(report).map_err(RecomputationError::Report)?;
    let test = ClaimedTest::deserialize(report).map_err(RecomputationError::Report)?;
    let scoring = claimed.request(&texts.lines)?;
    let mut line_faults = Vec::new();
    let (results, texts) = texts.results(&claimed, &scoring, workers, &mut line_faults).await?;
    let suspects = results.rows.iter().filter(|row| row.member == Some(true)).count();
    let seed = test.inference.map_or(0, |inference| inference.seed);
    let layout = TestLayout::lists(test.kind, Some(suspects), seed);
    let request = TestRequest { scoring, layout, commitment: test.commitment };
    let run = move |wanted: &dyn Fn() -> bool| test_report(&request, results, texts.as_ref(), wanted);
    let report = workers.run_behind(run).await.map_err(AuditFailure::from)??;
    Ok(RecomputedReport { report, line_faults })
}
