//! The warnings of a report.

use crate::audits::clusters::row_clusters;
use crate::audits::evidence::{Verdict, is_controllable};
use crate::audits::findings::SharedTextFindings;
use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, SampleScores};
use crate::pool::ModelInfo;
use crate::wire::number_of;
use mia::statistics::{Shift, Warning, WarningCode, method_warnings, warnings};

/// The p-value below which lengths count as different.
const LENGTH_LEVEL: f64 = 0.01;

/// Maximum number of documents that a warning names.
const NAMED: usize = 10;

/// Warnings about some of the samples.
pub fn cautions(request: &AuditRequest, results: &AuditResults, rows: &[&SampleScores]) -> Vec<Warning> {
    let targets = &request.metrics.fpr_targets;
    let mut all = warnings(&rows.iter().map(|row| row.as_sample()).collect::<Vec<_>>(), targets);
    let counts = |is_counted: &dyn Fn(&SampleScores) -> bool| {
        [true, false].map(|member| rows.iter().filter(|row| row.member == Some(member) && is_counted(row)).count())
    };
    let labelled = counts(&|_| true);
    for (place, column) in results.listed() {
        let scored = counts(&|row| row.scores[place].is_some());
        all.extend(method_warnings(&column.method.label, scored, labelled, targets));
    }
    all
}

/// Warning about a model whose weights are quantised.
pub fn caution_of_quantization(model: &ModelInfo) -> Option<Warning> {
    let quantization = model.quantization.as_ref()?;
    let detail = format!(
        "`{}` is quantised to {quantization}, which weakens what its log-probabilities show of its training data, so that less is \
         found than in the model before it was quantised; audit that model as well, and `compare` the two audits",
        model.id
    );
    Some(Warning { code: WarningCode::QuantizedModel, detail })
}

/// Warning about the run itself.
pub fn cautions_of_run(results: &AuditResults) -> Option<Warning> {
    let repeated = results.repeated_passes;
    (repeated > 0).then(|| Warning {
        code: WarningCode::RepeatedPasses,
        detail: format!(
            "{repeated} forward passes ran twice: `entropy_dataset` reads the texts in two rounds, and the cache \
             (`engine.cache`) did not hold the statistics of the first one; the scores are the same"
        ),
    })
}

/// Warnings about the verdict.
pub fn cautions_of_evidence(request: &AuditRequest, results: &AuditResults, verdict: Option<&Verdict>) -> Vec<Warning> {
    let unequal = verdict.and_then(|verdict| unequal_documents(results, verdict));
    let all = [duplicates(results), unequal, distribution_shift(results), control_tokenization(request, results)];
    all.into_iter().flatten().collect()
}

fn duplicates(results: &AuditResults) -> Option<Warning> {
    let clusters = row_clusters(&results.rows);
    let largest = clusters.iter().map(|cluster| cluster.texts).max().filter(|texts| *texts > 1)?;
    let mixed = clusters.iter().filter(|cluster| cluster.is_mixed).count();
    let mixed = if mixed == 0 { String::new() } else { format!("; {mixed} of them hold members and non-members") };
    let detail = format!(
        "{} texts are {} of equal or nearly equal texts or of one document, the largest of {largest} texts{mixed}: a \
         cluster counts once in standard errors, intervals and p-values",
        results.rows.len(),
        number_of(clusters.len(), "cluster")
    );
    Some(Warning { code: WarningCode::Duplicates, detail })
}

fn unequal_documents(results: &AuditResults, verdict: &Verdict) -> Option<Warning> {
    let mut sizes: Vec<usize> = row_clusters(&results.rows).iter().map(|cluster| cluster.texts).collect();
    sizes.sort_unstable();
    let (median, counted) = (*sizes.get(sizes.len() / 2)?, verdict.texts_per_cluster);
    (2 * counted < median).then(|| Warning {
        code: WarningCode::UnequalDocuments,
        detail: format!(
            "half of the clusters have {median} texts or more, and some no more than {counted}: the verdict counts {counted} of each, \
             so that clusters of all sizes are comparable"
        ),
    })
}

fn distribution_shift(results: &AuditResults) -> Option<Warning> {
    let words = results.blind.as_ref()?.words.as_ref()?;
    (words.shift != Shift::None).then(|| Warning {
        code: WarningCode::DistributionShift,
        detail: format!(
            "the words of the texts alone tell members from non-members (AUROC {:.3}, p = {:.3}): what a method finds may come \
             from that",
            words.auroc, words.p_value
        ),
    })
}

fn control_tokenization(request: &AuditRequest, results: &AuditResults) -> Option<Warning> {
    let control = request.evidence.control.as_ref()?;
    let is_left_out =
        |place: usize| !results.rows.iter().any(|row| row.control.get(place).is_some_and(Option::is_some));
    let left_out: Vec<String> = results
        .listed()
        .filter(|(place, column)| {
            is_controllable(&column.method, true) && !is_controllable(&column.method, false) && is_left_out(*place)
        })
        .map(|(_, column)| format!("`{}`", column.method.label))
        .collect();
    (!left_out.is_empty()).then(|| Warning {
        code: WarningCode::ControlTokenization,
        detail: format!(
            "{} has no control: the control `{control}` splits texts into other tokens, so that positions and counts of tokens \
             are not comparable",
            left_out.join(", ")
        ),
    })
}

/// Warnings about the p-values.
pub fn cautions_of_calibration(request: &AuditRequest, results: &AuditResults) -> Vec<Warning> {
    let Some(calibrated) = &results.calibration else { return Vec::new() };
    let warning = |code, detail| Some(Warning { code, detail });
    let overlap = (calibrated.overlap > 0).then(|| {
        let names = &calibrated.overlapping_documents;
        let more = if names.len() > NAMED { ", ..." } else { "" };
        let first = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        let named = if names.is_empty() { String::new() } else { format!(" (documents: {first}{more})") };
        let verb = if calibrated.overlap == 1 { "is" } else { "are" };
        let clusters = number_of(calibrated.overlap, "cluster");
        format!("{clusters} of the calibration {verb} tested as well{named}, and not counted as known")
    });
    let shared = calibrated.shared_text.as_ref().and_then(SharedTextFindings::sentence);
    let mismatch = calibrated.length_p_value.filter(|p_value| *p_value < LENGTH_LEVEL).map(|p_value| {
        format!(
            "the texts of the calibration have other lengths than those tested (Kolmogorov-Smirnov, p = {p_value:.1e}), so that \
             p-values may not hold"
        )
    });
    let small =
        request.evidence.decisions.as_ref().and_then(|decision| too_small(results, &decision.method, decision.fdr));
    [
        overlap.and_then(|detail| warning(WarningCode::CalibrationOverlap, detail)),
        shared.and_then(|detail| warning(WarningCode::CalibrationOverlap, detail)),
        mismatch.and_then(|detail| warning(WarningCode::CalibrationMismatch, detail)),
        small.and_then(|detail| warning(WarningCode::CalibrationSmall, detail)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Why the calibration is too small for a list at this rate by this method, in words.
fn too_small(results: &AuditResults, label: &str, fdr: f64) -> Option<String> {
    let calibrated = results.calibration.as_ref()?;
    let place = results.listed().position(|(_, column)| &*column.method.label == label)?;
    let Some(calibration) = calibrated.methods.get(place)? else {
        return Some(format!(
            "there are fewer than 19 known non-members with a score of `{label}`, so that it has no p-values"
        ));
    };
    let fewest = calibrated.decisions.as_ref().map_or(1, |decisions| decisions.minimum_discoveries);
    let impossible = calibrated.decisions.as_ref().is_some_and(|decisions| fewest > decisions.tested);
    (calibration.resolution > fdr || impossible).then(|| {
        format!(
            "{} known non-members make no p-value below {:.4}: a list at a false discovery rate of {fdr} takes at least {fewest} texts",
            calibration.clusters, calibration.resolution
        )
    })
}
