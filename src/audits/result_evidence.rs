//! Evidence added to the results of an audit once its samples are scored: p-values and the list if there is a calibration;
//! for labelled texts, the findings without the model, the test of early against late positions, and probabilities if the
//! request states a prior.

use super::calibration_mismatch::CalibrationMismatch;
use super::calibrations::Calibration;
use super::cluster_ids::dense;
use super::clustered_rows::{clustered, strata};
use super::decisions::add_decisions;
use super::evidence::{PERMUTATION_SEED, blind_findings, posteriors};
use super::request::AuditRequest;
use super::results::AuditResults;
use super::sample_index::SampleTexts;
use super::sample_scoring::ScoredSamples;
use mia::statistics::{Comparability, ComparabilityFit, ComparedTexts, TextFacts};
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
    let tokens = results.rows.iter().map(|row| row.scored_tokens);
    let mut blind = blind_findings(&labels, clusters, tokens, &texts.bytes, &texts.words, wanted);
    if let Some(words) = blind.words.as_mut().filter(|_| !texts.retained) {
        words.top_words = None;
    }
    results.blind = Some(blind);
    let fact = |(row, &[bytes, zlib_bytes]): (&super::results::SampleScores, &[usize; 2])| TextFacts {
        bytes,
        zlib_bytes,
        scored_tokens: row.scored_tokens,
        control: row.control_measures.unwrap_or_default(),
    };
    let facts: Vec<TextFacts> = results.rows.iter().zip(&texts.bytes).map(fact).collect();
    let strata = strata(&results.rows);
    let compared = ComparedTexts {
        labels: &labels,
        clusters,
        strata: &strata,
        words: &texts.words,
        characters: &texts.characters,
        word_pairs: &texts.word_pairs,
        facts: &facts,
    };
    let Some(fit) = ComparabilityFit::new(&compared, wanted) else { return };
    let place = results.columns.iter().position(|column| Some(&column.method.label) == primary);
    let is_scored = |row: usize| place.is_none_or(|place| results.rows[row].scores[place].is_some());
    let is_compared = |row: usize| is_counted(row) && is_scored(row);
    let clustered = clustered(&results.rows, &labels);
    results.comparability = fit.comparability(&compared, &clustered, is_compared, texts.retained);
    results.rows.iter_mut().zip(fit.log_odds).for_each(|(row, log_odds)| row.log_odds = Some(log_odds));
}
