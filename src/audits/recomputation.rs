//! Recomputation of an audit's report from the scores of its samples, by which a report is verified.
//!
//! Whatever follows from the scores is computed anew, by the code that makes reports. With the samples, so is whatever follows from the
//! texts: clusters, the classifier that compares the lists, and its words. Statistics of single tokens are in neither.

use super::calibrations::Calibration;
use super::clusters::{clusters, strata};
use super::columns::{ErrorReasons, columns};
use super::decisions::add_decisions;
use super::error::AuditFailure;
use super::evidence::{CalibrationSource, CitedPlan};
use super::findings::{BlindFindings, SplitOutcome};
use super::known_non_members::{KnownWorks, comparability_with_calibration};
use super::report::{AuditReport, Provenance, build_report};
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::sample_index::SampleIndex;
use super::shared_text::{SharedText, add_ngrams};
use super::stored_scores::{LoadedScores, ScoreHeader};
use super::text_lists::{SampleTexts, add_blind_findings};
use crate::datasets::{Label, SampleBlocks, SampleId};
use crate::scorer::{TextError, Usage, Workers};
use indexmap::IndexMap;
use mia::statistics::{ClusteredTexts, Comparability, PositionRows};
use mia::texts::TextDigest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// One line of an audit's scores.
#[derive(Clone, Debug, Deserialize)]
pub struct ScoreLine {
    index: usize,
    id: Option<SampleId>,
    label: Option<Label>,
    group: Option<String>,
    document: Option<SampleId>,
    cluster: Option<usize>,
    scored_tokens: usize,
    truncated: bool,
    text_digest: TextDigest,
    pub scores: IndexMap<Arc<str>, f64>,
    #[serde(default)]
    baseline_scores: IndexMap<Arc<str>, f64>,
    #[serde(default)]
    pub control_scores: IndexMap<Arc<str>, f64>,
    #[serde(default)]
    control_measures: IndexMap<String, f64>,
    log_odds: Option<f64>,
    #[serde(default)]
    errors: Vec<TextError>,
}

/// The report of an audit as far as it can be recomputed.
pub struct RecomputedReport {
    pub report: AuditReport,
    /// Differences of the lines from the samples, in words; empty without samples.
    pub line_faults: Vec<String>,
}

/// A report or its scores cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecomputationError {
    #[error("the report is no audit's of this version: {0}")]
    Report(serde_json::Error),
    #[error("line {}: its index is {found}: lines are missing or out of order", .line + 1)]
    Order { line: usize, found: usize },
    #[error("there are {lines} lines of scores, and {samples} samples")]
    Samples { lines: usize, samples: usize },
    #[error("line {}: {fault}", .line + 1)]
    Line { line: usize, fault: String },
    #[error(transparent)]
    Audit(#[from] AuditFailure),
}

impl ScoreLine {
    /// The row of the line, without cluster and texts' digests of other forms.
    fn row(self, request_columns: &[super::Column], reasons: &mut ErrorReasons) -> Result<SampleScores, AuditFailure> {
        let place =
            |column: &super::Column, scores: &IndexMap<Arc<str>, f64>| scores.get(&column.method.label).copied();
        let score = |column| place(column, &self.scores).or_else(|| place(column, &self.baseline_scores));
        let control = request_columns.iter().map(|column| place(column, &self.control_scores)).collect();
        let has_control = !self.control_measures.is_empty();
        Ok(SampleScores {
            text: self.text_digest,
            member: self.label.and_then(Label::is_member),
            scored_tokens: self.scored_tokens,
            truncated: self.truncated,
            scores: request_columns.iter().map(score).collect(),
            control: if has_control { control } else { Vec::new() },
            control_measures: has_control
                .then(|| SampleScores::measures(|name| self.control_measures.get(name).copied())),
            log_odds: self.log_odds,
            cluster: self.cluster,
            errors: reasons.row_errors(self.errors, request_columns)?,
            id: self.id,
            group: self.group,
            document: self.document,
            ..SampleScores::default()
        })
    }
}

/// Texts that an audit tests, or known non-members, with the lines of their scores.
pub struct ScoredTexts<'a> {
    pub lines: Vec<ScoreLine>,
    /// `None` if the texts are not at hand.
    pub samples: Option<&'a SampleBlocks>,
}

/// Computes the report anew from its request and the lines of its scores, from the samples if they are given, and, with these, from the
/// known non-members of its calibration.
///
/// # Errors
/// [`RecomputationError`] if the report is no audit's, or the lines are not those of an audit like this.
pub async fn recompute(
    report: &Value,
    texts: ScoredTexts<'_>,
    known: Option<ScoredTexts<'_>>,
    workers: &Workers,
) -> Result<RecomputedReport, RecomputationError> {
    let claimed = ClaimedReport::deserialize(report).map_err(RecomputationError::Report)?;
    let ClaimedPlan { id, created } = &claimed.plan;
    let plan = id.clone().zip(created.clone()).map(|(id, created)| CitedPlan { id, created });
    let request = claimed.provenance.audit_request(plan);
    let (samples, columns) = (texts.samples, columns(&request.methods).len());
    let mut line_faults = Vec::new();
    let mut results = results(&claimed, &request, texts.lines)?;
    let index = match samples {
        Some(samples) => Some(SampleIndex::read(samples, columns, workers, |_| {}).await?),
        None => None,
    };
    let texts = index.map(|index| indexed(&mut results, index, &mut line_faults)).transpose()?;
    let (mut known_works, mut comparability) = (None, None);
    if let (Some(samples), Some(ScoredTexts { lines, samples: Some(known) })) = (samples, known) {
        let calibration = calibration(&claimed, &request, lines, known, workers, &mut line_faults).await?;
        let shared = SharedText::find(samples, calibration.rows(), calibration.ngram_step(), workers).await?;
        let works = KnownWorks { calibration, shared };
        if results.labels().is_none() {
            comparability = comparability_with_calibration(samples, &results.rows, &works, workers).await?;
        }
        known_works = Some(works);
    }
    let run = move |wanted: &dyn Fn() -> bool| {
        let given = GivenTexts { texts, known_works, comparability };
        finish(results, &request, given, line_faults, wanted)
    };
    workers.run_behind(run).await.map_err(AuditFailure::from)?
}

/// The calibration of the audit, from the lines and the texts of its known non-members.
async fn calibration(
    claimed: &ClaimedReport,
    request: &AuditRequest,
    lines: Vec<ScoreLine>,
    samples: &SampleBlocks,
    workers: &Workers,
    line_faults: &mut Vec<String>,
) -> Result<Calibration, RecomputationError> {
    let mut known = results(claimed, request, lines)?;
    let index = SampleIndex::read(samples, known.columns.len(), workers, |_| {}).await?;
    known.dataset_digest.clone_from(&index.digest);
    let mut known_faults = Vec::new();
    indexed(&mut known, index, &mut known_faults)?;
    line_faults.extend(known_faults.into_iter().map(|fault| format!("known non-members: {fault}")));
    add_ngrams(&mut known, samples, workers).await?;
    let header = ScoreHeader::from(&known).into();
    Ok(Calibration::new(LoadedScores { header, rows: known.rows }, Some(samples.clone())))
}

/// Gives the rows what the samples say, and returns the features of the texts.
fn indexed(
    results: &mut AuditResults,
    index: SampleIndex,
    line_faults: &mut Vec<String>,
) -> Result<SampleTexts, RecomputationError> {
    if index.rows.len() != results.rows.len() {
        return Err(RecomputationError::Samples { lines: results.rows.len(), samples: index.rows.len() });
    }
    for (line, (row, sample)) in results.rows.iter_mut().zip(index.rows).enumerate() {
        line_faults.extend(line_fault(line, row, &sample));
        (row.cluster, row.normalized, row.text) = (sample.cluster, sample.normalized, sample.text);
        (row.member, row.group, row.document) = (sample.member, sample.group, sample.document);
    }
    Ok(index.texts)
}

/// The parts of a report that a recomputation begins with.
#[derive(Deserialize)]
struct ClaimedReport {
    provenance: Provenance,
    #[serde(default)]
    plan: ClaimedPlan,
    #[serde(default)]
    splits: Vec<SplitOutcome>,
    blind: Option<BlindFindings>,
}

#[derive(Default, Deserialize)]
struct ClaimedPlan {
    id: Option<String>,
    created: Option<String>,
}

/// The results of an audit with these lines.
fn results(
    claimed: &ClaimedReport,
    request: &AuditRequest,
    lines: Vec<ScoreLine>,
) -> Result<AuditResults, RecomputationError> {
    let (columns, mut reasons) = (columns(&request.methods), ErrorReasons::default());
    let mut rows = Vec::with_capacity(lines.len());
    for (line, score_line) in lines.into_iter().enumerate() {
        if score_line.index != line {
            return Err(RecomputationError::Order { line, found: score_line.index });
        }
        let row = score_line.row(&columns, &mut reasons);
        rows.push(row.map_err(|error| RecomputationError::Line { line, fault: error.to_string() })?);
    }
    let provenance = &claimed.provenance;
    Ok(AuditResults {
        columns,
        rows,
        error_reasons: reasons.into_list(),
        dataset_digest: provenance.dataset_digest.clone(),
        profile: PositionRows::default(),
        group_profiles: BTreeMap::new(),
        selected_tokens: Vec::new(),
        usage: Usage::default(),
        repeated_passes: 0,
        splits: claimed.splits.clone(),
        control: provenance.control.as_ref().map(|control| control.model_info()),
        // Its words decide a warning, and only the texts have them.
        blind: claimed.blind.clone(),
        comparability: None,
        prior_test: None,
        calibration: None,
        ngram_step: None,
        overflow: request.overflow,
        numerics: provenance.numerics.clone(),
        model: provenance.model_info(),
        other_models: provenance.other_models.iter().map(|model| model.model_info()).collect(),
    })
}

/// Inputs beside the scores.
struct GivenTexts {
    texts: Option<SampleTexts>,
    known_works: Option<KnownWorks>,
    /// Comparability of texts without labels with the known non-members.
    comparability: Option<Comparability>,
}

/// Adds the findings of the scores and texts, and puts the report together.
fn finish(
    mut results: AuditResults,
    request: &AuditRequest,
    GivenTexts { texts, known_works, comparability }: GivenTexts,
    mut line_faults: Vec<String>,
    wanted: &dyn Fn() -> bool,
) -> Result<RecomputedReport, RecomputationError> {
    let is_drawn = matches!(request.evidence.calibration, Some(CalibrationSource::Share(_)));
    if is_drawn || known_works.is_some() {
        add_decisions(request, &mut results, known_works.as_ref()).map_err(AuditFailure::from)?;
    }
    let primary = results.place(request.evidence.primary.as_ref());
    match texts {
        Some(texts) if results.labels().is_some() => {
            let claimed: Vec<Option<f64>> = results.rows.iter_mut().map(|row| row.log_odds.take()).collect();
            let clusters = clusters(&results.rows);
            add_blind_findings(&mut results, primary, &texts, &clusters, |_| true, wanted);
            let differs = |(row, claimed): (&SampleScores, &Option<f64>)| !is_close(row.log_odds, *claimed);
            let differing = results.rows.iter().zip(&claimed).position(differs);
            line_faults.extend(differing.map(|line| format!("line {}: `log_odds` is not that of the texts", line + 1)));
        }
        _ => results.comparability = comparability.or_else(|| comparability_by_rows(&results, primary)),
    }
    let report = build_report(request, &results, wanted)?;
    Ok(RecomputedReport { report, line_faults })
}

/// The first difference of a line from its sample, in words.
fn line_fault(line: usize, row: &SampleScores, sample: &SampleScores) -> Option<String> {
    let differs = [
        ("text_digest", row.text != sample.text),
        ("label", row.member != sample.member),
        ("group", row.group != sample.group),
        ("cluster", row.cluster != sample.cluster),
    ];
    let (field, _) = differs.into_iter().find(|(_, differs)| *differs)?;
    Some(format!("line {}: `{field}` is not that of the sample", line + 1))
}

/// Logarithms of another library may differ in their last bits, and the regression sums thousands of them.
fn is_close(a: Option<f64>, b: Option<f64>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-6 * a.abs().max(1.0),
        (None, None) => true,
        _ => false,
    }
}

/// The separation of the lists by the log-odds of the lines; `None` if the lines have none.
fn comparability_by_rows(results: &AuditResults, primary: Option<usize>) -> Option<Comparability> {
    let labels = results.labels()?;
    let (clusters, strata) = (clusters(&results.rows), strata(&results.rows));
    let mut seen = HashSet::<TextDigest>::new();
    let distinct: Vec<usize> = (0..labels.len()).filter(|&row| seen.insert(results.rows[row].text)).collect();
    let log_odds: Option<Vec<f64>> = distinct.iter().map(|&row| results.rows[row].log_odds).collect();
    fn of_distinct<T: Copy>(distinct: &[usize], all: &[T]) -> Vec<T> {
        distinct.iter().map(|&row| all[row]).collect()
    }
    let digests: Vec<TextDigest> = distinct.iter().map(|&row| results.rows[row].text).collect();
    let clustered = ClusteredTexts::new(
        &of_distinct(&distinct, &labels),
        &of_distinct(&distinct, &clusters),
        &of_distinct(&distinct, &strata),
        &digests,
    );
    let is_scored = |text: usize| primary.is_none_or(|place| results.rows[distinct[text]].scores[place].is_some());
    Comparability::of_log_odds(&log_odds?, &clustered, &is_scored)
}
