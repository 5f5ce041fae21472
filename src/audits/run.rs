//! Runs one audit: every sample through the scorer, then the report. The service and the command line share it.

use super::calibrations::Calibration;
use super::clusters::clusters;
use super::decisions::add_decisions;
use super::error::{AuditFailure, CalibrationMismatch};
use super::evidence::PERMUTATION_SEED;
use super::forecast::{Forecast, WorkCounts};
use super::known_non_members::{KnownWorks, comparability_with_calibration};
use super::report::{AuditReport, build_report};
use super::request::AuditRequest;
use super::results::AuditResults;
use super::run_event::RunEvent;
use super::sample_index::fold_samples;
use super::sample_scoring::{ScoredSamples, score_samples};
use super::served_cost::ServedForecast;
use super::shared_text::SharedText;
use super::text_lists::add_blind_findings;
use crate::datasets::{Sample, SampleBlocks};
use crate::scorer::Scorer;
use mia::statistics::{Comparability, LabelledScore, folds, out_of_fold_posteriors};
use std::sync::Arc;

/// An audit that has been run.
#[derive(Clone, Debug)]
pub struct AuditOutcome {
    pub report: AuditReport,
    pub results: AuditResults,
}

/// Runs an audit of these samples, with the calibration that it names, and tells `progress` how far it is. Dropping the
/// future cancels the audit at once, and to run the request again resumes it: what was scored before comes from the cache
/// of statistics. What is wrong with one sample is part of the report.
pub async fn run(
    request: Arc<AuditRequest>,
    samples: &SampleBlocks,
    calibration: Option<Calibration>,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<AuditOutcome, AuditFailure> {
    let shared = match &calibration {
        Some(calibration) => {
            SharedText::find(samples, calibration.rows(), calibration.ngram_step(), scorer.workers()).await?
        }
        None => None,
    };
    if let Some(shared) = &shared {
        progress(RunEvent::Shared(shared.findings.clone()));
    }
    let known_works =
        calibration.as_ref().map(|known| known.clusters_without(shared.as_ref().map(|shared| &shared.known)));
    let count = |counts: WorkCounts, chunk: Vec<(usize, Sample)>| Ok(counts.with(&chunk));
    let counts = fold_samples(samples, scorer.workers(), WorkCounts::default(), count, |_| {}).await?;
    let (texts, bytes) = counts.texts_and_bytes();
    let served = ServedForecast::new(&request, texts, bytes, scorer.pool());
    progress(RunEvent::Forecast(Forecast::new(&counts, known_works, served)));
    let mut scored = score_samples(&request, samples, scorer, &progress).await?;
    progress(RunEvent::Testing);
    let labelled = scored.results.rows.iter().any(|row| row.member.is_some());
    let known = calibration.map(|calibration| KnownWorks { calibration, shared });
    let comparability = match &known {
        // Where there are labels, the two classes are compared instead.
        Some(known) if !labelled => {
            comparability_with_calibration(samples, &scored.results.rows, known, scorer.workers()).await?
        }
        _ => None,
    };
    // Sorting and resampling the scores of many samples and methods is no work for the async runtime's threads.
    let report = move |wanted: &dyn Fn() -> bool| {
        add_evidence(&request, &mut scored, known.as_ref(), comparability, wanted)?;
        let report = build_report(&request, &scored.results, wanted)?;
        Ok(AuditOutcome { report, results: scored.results })
    };
    scorer.workers().run_behind(report).await?
}

/// Adds to the results what is computed of the scores and the texts: p-values and the list if there is a calibration; for
/// labelled texts, the findings without the model, the test of early against late positions, and probabilities if the
/// request states a prior. `comparability` is that with the texts of the calibration, where it is known.
fn add_evidence(
    request: &AuditRequest,
    scored: &mut ScoredSamples,
    known: Option<&KnownWorks>,
    comparability: Option<Comparability>,
    wanted: &dyn Fn() -> bool,
) -> Result<(), CalibrationMismatch> {
    add_decisions(request, &mut scored.results, known)?;
    let ScoredSamples { results, texts, prior } = scored;
    if results.labels().is_none() {
        results.comparability = comparability;
        return Ok(());
    }
    let clusters = clusters(&results.rows);
    let primary = results.place(request.evidence.primary.as_ref());
    add_blind_findings(results, primary, texts, &clusters, |_| true, wanted);
    results.prior_test = prior.finish(PERMUTATION_SEED, wanted);
    add_posteriors(request, results);
    Ok(())
}

/// Adds to labelled texts the probability that each is a member, if the request states a prior.
pub fn add_posteriors(request: &AuditRequest, results: &mut AuditResults) {
    let place = results.place(request.evidence.primary.as_ref());
    let (Some(labels), Some(place), Some(prior)) = (results.labels(), place, request.evidence.prior) else { return };
    let clusters = clusters(&results.rows);
    let scores: Vec<Option<f64>> = results.rows.iter().map(|row| row.scores[place]).collect();
    let probabilities = posteriors(&labels, &clusters, &scores, prior);
    results.rows.iter_mut().zip(probabilities).for_each(|(row, posterior)| row.posterior = posterior);
}

/// Computes the probability that each text is a member, by its score and the share `prior` of members among texts like these.
/// `None` for a text without a score, and for all if the other folds lack a class.
fn posteriors(labels: &[bool], clusters: &[usize], scores: &[Option<f64>], prior: f64) -> Vec<Option<f64>> {
    let places: Vec<usize> = (0..labels.len()).filter(|&place| scores[place].is_some()).collect();
    let folds = folds(labels, clusters);
    let sample = |&place: &usize| Some(LabelledScore { score: scores[place]?, member: labels[place] });
    let samples: Vec<LabelledScore> = places.iter().filter_map(sample).collect();
    let folds: Vec<usize> = places.iter().map(|&place| folds[place]).collect();
    let mut posteriors = vec![None; labels.len()];
    let computed = out_of_fold_posteriors(&samples, &folds, prior).unwrap_or_default();
    for (place, posterior) in places.into_iter().zip(computed) {
        posteriors[place] = Some(posterior);
    }
    posteriors
}

#[cfg(test)]
mod tests {
    use super::posteriors;

    #[test]
    fn a_text_without_a_score_has_none_and_the_others_have_a_probability() {
        let labels: Vec<bool> = (0..40).map(|place| place % 2 == 0).collect();
        let clusters: Vec<usize> = (0..40).collect();
        let score = |place: usize| {
            (place > 0).then_some((place * 7919 % 101) as f64 + if place.is_multiple_of(2) { 50.0 } else { 0.0 })
        };
        let scores: Vec<Option<f64>> = (0..40).map(score).collect();
        let posteriors = posteriors(&labels, &clusters, &scores, 0.1);
        assert_eq!(posteriors[0], None);
        let known: Vec<f64> = posteriors.iter().flatten().copied().collect();
        assert_eq!(known.len(), 39);
        assert!(known.iter().all(|value| (0.0..=1.0).contains(value)), "{known:?}");
        let highest = scores.iter().zip(&posteriors).max_by(|a, b| a.0.partial_cmp(b.0).unwrap()).unwrap().1;
        assert!(*highest > Some(0.1), "{highest:?}");
    }
}
