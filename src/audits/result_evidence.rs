//! Evidence added to the results of an audit once its samples are scored: p-values and the list if there is a calibration;
//! for labelled texts, the findings without the model, the test of early against late positions, and probabilities if the
//! request states a prior.

use super::calibration_mismatch::CalibrationMismatch;
use super::calibrations::Calibration;
use super::cluster_ids::dense;
use super::clustered_rows::strata;
use super::decisions::add_decisions;
use super::evidence::{PERMUTATION_SEED, blind_findings, posteriors};
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::sample_scoring::ScoredSamples;
use super::text_lists::{SampleTexts, TextLists};
use mia::statistics::Comparability;
use std::sync::Arc;

/// Adds it. `comparability` says whether the samples are like the texts of the calibration, where that is known.
pub fn add_evidence(
    request: &AuditRequest,
    scored: &mut ScoredSamples,
    calibration: Option<&Calibration>,
    comparability: Option<Comparability>,
    wanted: &dyn Fn() -> bool,
) -> Result<(), CalibrationMismatch> {
    add_decisions(request, &mut scored.results, calibration)?;
    let ScoredSamples { results, texts, prior } = scored;
    let Some(labels) = results.labels() else {
        results.comparability = comparability;
        return Ok(());
    };
    let clusters = dense(results.rows.iter().map(|row| row.cluster));
    add_blind_findings(results, request.evidence.primary.as_ref(), texts, &clusters, |_| true, wanted);
    results.prior_test = prior.finish(PERMUTATION_SEED, wanted);
    let evidence = &request.evidence;
    let primary = results.columns.iter().position(|column| Some(&column.method.label) == evidence.primary.as_ref());
    if let (Some(place), Some(prior)) = (primary, evidence.prior) {
        let scores: Vec<Option<f64>> = results.rows.iter().map(|row| row.scores[place]).collect();
        let probabilities = posteriors(&labels, &clusters, &scores, prior);
        results.rows.iter_mut().zip(probabilities).for_each(|(row, posterior)| row.posterior = posterior);
    }
    Ok(())
}

/// Adds what the texts of labelled samples show without the model. Of the rows that `is_counted`, those that the primary method scores
/// are compared. Words of texts that are not retained are not shown.
pub fn add_blind_findings(
    results: &mut AuditResults,
    primary: Option<&Arc<str>>,
    texts: &SampleTexts,
    clusters: &[usize],
    is_counted: impl Fn(usize) -> bool,
    wanted: &dyn Fn() -> bool,
) {
    let Some(labels) = results.labels() else { return };
    let rows: Vec<&SampleScores> = results.rows.iter().collect();
    let lists = TextLists::new(&rows, &labels, clusters, &strata(&results.rows), texts);
    let mut blind = blind_findings(&lists.labels, &lists.clusters, &lists.facts, &texts.words, wanted);
    if let Some(words) = blind.words.as_mut().filter(|_| !texts.retained) {
        words.top_words = None;
    }
    results.blind = Some(blind);
    let Some(fit) = lists.fit(texts, wanted) else { return };
    let place = results.columns.iter().position(|column| Some(&column.method.label) == primary);
    let is_scored = |row: usize| place.is_none_or(|place| results.rows[row].scores[place].is_some());
    results.comparability = lists.comparability(&fit, texts, |row| is_counted(row) && is_scored(row));
    for (row, &place) in results.rows.iter_mut().zip(texts.places()) {
        row.log_odds = Some(fit.log_odds[place]);
    }
}
