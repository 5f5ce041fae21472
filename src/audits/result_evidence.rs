//! What is added to the results of an audit once its samples are scored: p-values and the list where there is a calibration, and of
//! labelled texts what they show without a model, whether early positions tell more than late ones, and probabilities where the
//! request states a prior.

use super::calibration_mismatch::CalibrationMismatch;
use super::calibrations::Calibration;
use super::cluster_ids::dense;
use super::decisions::add_decisions;
use super::evidence::{PERMUTATION_SEED, blind_findings, posteriors};
use super::request::AuditRequest;
use super::results::AuditResults;
use super::sample_index::SampleTexts;
use super::sample_scoring::ScoredSamples;
use mia::statistics::Shift;

/// Adds it. `shift` says whether words tell the samples from the texts of the calibration, where that is known.
pub fn add_evidence(
    request: &AuditRequest,
    scored: &mut ScoredSamples,
    calibration: Option<&Calibration>,
    shift: Option<Shift>,
    wanted: &dyn Fn() -> bool,
) -> Result<(), CalibrationMismatch> {
    add_decisions(request, &mut scored.results, calibration, shift)?;
    let ScoredSamples { results, texts, prior } = scored;
    let Some(labels) = results.labels() else { return Ok(()) };
    let clusters = dense(results.rows.iter().map(|row| row.cluster));
    add_blind_findings(results, texts, &clusters, wanted);
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

/// Adds what the texts of labelled samples show without a model. Words of texts that are not retained are not shown.
pub fn add_blind_findings(
    results: &mut AuditResults,
    texts: &SampleTexts,
    clusters: &[usize],
    wanted: &dyn Fn() -> bool,
) {
    let Some(labels) = results.labels() else { return };
    let tokens = results.rows.iter().map(|row| row.scored_tokens);
    let (mut blind, odds) = blind_findings(&labels, clusters, tokens, &texts.bytes_per_zlib_byte, &texts.words, wanted);
    if let Some(words) = blind.words.as_mut().filter(|_| !texts.retained) {
        words.top_words = None;
    }
    (results.blind, results.word_odds) = (Some(blind), odds);
}
