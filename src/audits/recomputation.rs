//! Recomputation of an audit's report from the scores of its samples, by which a report is verified.
//!
//! Whatever the scores determine is computed anew, by the code that makes reports. With the samples, so is whatever the texts determine:
//! clusters, the classifier that compares the lists, and its words. Statistics of single tokens are in neither.

use super::calibrations::Calibration;
use super::clusters::{clusters, strata};
use super::columns::{ErrorReasons, columns};
use super::decisions::add_decisions;
use super::derived_fields::DerivedFields;
use super::error::AuditFailure;
use super::evidence::{CalibrationSource, CitedPlan};
use super::findings::{BlindFindings, SplitOutcome};
use super::known_non_members::{KnownWorks, comparability_with_calibration};
use super::report::{AuditReport, Provenance, build_report};
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::run::add_posteriors;
use super::sample_index::SampleIndex;
use super::score_line::ScoreLine;
use super::shared_text::{SharedText, add_ngrams};
use super::stored_scores::{LoadedScores, ScoreHeader};
use super::text_lists::{SampleTexts, add_blind_findings};
use crate::datasets::SampleBlocks;
use crate::scorer::{Usage, Workers};
use mia::methods::Fault;
use mia::statistics::{ClusteredTexts, Comparability, LabelledScore, PositionRows, auroc};
use mia::texts::TextDigest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};

/// A report as far as it can be recomputed.
pub struct RecomputedReport<R> {
    pub report: R,
    /// Differences of the lines from the samples and from what was computed of all, in words.
    pub line_faults: Vec<String>,
}

/// A report or its scores cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecomputationError {
    #[error("this is no report of this version: {0}")]
    Report(serde_json::Error),
    #[error("no audit accepts the request of the report: {} {}", .0.pointer, .0.detail)]
    Request(Fault),
    #[error("line {}: its index is {found}: lines are missing or out of order", .line + 1)]
    Order { line: usize, found: usize },
    #[error("there are {lines} lines of scores, and {samples} samples")]
    Samples { lines: usize, samples: usize },
    #[error("line {}: {fault}", .line + 1)]
    Line { line: usize, fault: String },
    #[error(transparent)]
    Audit(#[from] AuditFailure),
}

/// Texts that an audit tests, or known non-members, with the lines of their scores.
pub struct ScoredTexts<'a> {
    pub lines: Vec<ScoreLine>,
    /// `None` if the texts are not at hand.
    pub samples: Option<&'a SampleBlocks>,
}

impl ScoredTexts<'_> {
    /// The results that a report with these parts was made of and, of the samples, the features of their texts. Where lines differ from
    /// their samples, `line_faults` says so.
    ///
    /// # Errors
    /// [`RecomputationError`] if the lines are not those of an audit like this.
    pub(super) async fn results(
        self,
        claimed: &ClaimedReport,
        request: &AuditRequest,
        workers: &Workers,
        line_faults: &mut Vec<String>,
    ) -> Result<(AuditResults, Option<SampleTexts>), RecomputationError> {
        let digests = sample_digests(&self.lines);
        let mut results = results(claimed, request, self.lines)?;
        let texts = match self.samples {
            Some(samples) => Some(indexed(&mut results, &digests, samples, workers, line_faults).await?),
            None => None,
        };
        Ok((results, texts))
    }
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
) -> Result<RecomputedReport<AuditReport>, RecomputationError> {
    let claimed = ClaimedReport::deserialize(report).map_err(RecomputationError::Report)?;
    let request = claimed.request(&texts.lines)?;
    let mut line_faults = Vec::new();
    let samples = texts.samples;
    let (results, texts) = texts.results(&claimed, &request, workers, &mut line_faults).await?;
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

/// The scores of an audit, from its report and their lines.
///
/// # Errors
/// [`RecomputationError`] if the report is no audit's, or the lines are not those of an audit like this.
pub fn scores_of_report(report: &Value, lines: Vec<ScoreLine>) -> Result<LoadedScores, RecomputationError> {
    let claimed = ClaimedReport::deserialize(report).map_err(RecomputationError::Report)?;
    let request = claimed.provenance.audit_request(None);
    let results = results(&claimed, &request, lines)?;
    Ok(LoadedScores { header: ScoreHeader::from(&results).into(), rows: results.rows })
}

/// The parts of a report that a recomputation begins with.
#[derive(Deserialize)]
pub(super) struct ClaimedReport {
    provenance: Provenance,
    #[serde(default)]
    plan: ClaimedPlan,
    #[serde(default)]
    splits: Vec<SplitOutcome>,
    blind: Option<BlindFindings>,
    #[serde(default)]
    warnings: Vec<ClaimedWarning>,
}

#[derive(Default, Deserialize)]
struct ClaimedPlan {
    id: Option<String>,
    created: Option<String>,
}

#[derive(Deserialize)]
struct ClaimedWarning {
    code: String,
    detail: String,
}

impl ClaimedReport {
    /// The request, which is one that an audit accepts.
    ///
    /// # Errors
    /// [`RecomputationError::Request`] for the first fault.
    pub fn request(&self, lines: &[ScoreLine]) -> Result<AuditRequest, RecomputationError> {
        let ClaimedPlan { id, created } = &self.plan;
        let plan = id.clone().zip(created.clone()).map(|(id, created)| CitedPlan { id, created });
        let request = self.provenance.audit_request(plan);
        match request.faults(lines.iter().any(|line| line.group.is_some())).into_iter().next() {
            Some(fault) => Err(RecomputationError::Request(fault)),
            None => Ok(request),
        }
    }

    /// The number of passes that ran twice, which the warning about them begins with.
    fn repeated_passes(&self) -> usize {
        let warning = self.warnings.iter().find(|warning| warning.code == "repeated_passes");
        let count = warning.and_then(|warning| warning.detail.split(' ').next()?.parse().ok());
        count.unwrap_or(0)
    }
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
        let row = score_line.into_row(&columns, &mut reasons);
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
        repeated_passes: claimed.repeated_passes(),
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

/// The calibration of the audit, from the lines and the texts of its known non-members.
async fn calibration(
    claimed: &ClaimedReport,
    request: &AuditRequest,
    lines: Vec<ScoreLine>,
    samples: &SampleBlocks,
    workers: &Workers,
    line_faults: &mut Vec<String>,
) -> Result<Calibration, RecomputationError> {
    let digests = sample_digests(&lines);
    let mut known = results(claimed, request, lines)?;
    let mut known_faults = Vec::new();
    indexed(&mut known, &digests, samples, workers, &mut known_faults).await?;
    line_faults.extend(known_faults.into_iter().map(|fault| format!("known non-members: {fault}")));
    add_ngrams(&mut known, samples, workers).await?;
    let header = ScoreHeader::from(&known).into();
    Ok(Calibration::new(LoadedScores { header, rows: known.rows }, Some(samples.clone())))
}

fn sample_digests(lines: &[ScoreLine]) -> Vec<Option<String>> {
    lines.iter().map(|line| line.sample_digest.clone()).collect()
}

/// Gives the rows what the samples say, and returns the features of the texts.
async fn indexed(
    results: &mut AuditResults,
    digests: &[Option<String>],
    samples: &SampleBlocks,
    workers: &Workers,
    line_faults: &mut Vec<String>,
) -> Result<SampleTexts, RecomputationError> {
    let index = SampleIndex::read(samples, results.columns.len(), workers, |_| {}).await?;
    if index.rows.len() != results.rows.len() {
        return Err(RecomputationError::Samples { lines: results.rows.len(), samples: index.rows.len() });
    }
    results.dataset_digest = index.digest;
    for (line, (row, sample)) in results.rows.iter_mut().zip(index.rows).enumerate() {
        line_faults.extend(line_fault(line, row, digests[line].as_deref(), &sample));
        (row.cluster, row.normalized, row.text) = (sample.cluster, sample.normalized, sample.text);
        (row.member, row.group, row.document) = (sample.member, sample.group, sample.document);
        row.id = sample.id;
    }
    Ok(index.texts)
}

/// The first difference of a line from its sample, in words. Under other names of columns a line may lack id and document.
fn line_fault(line: usize, row: &SampleScores, digest: Option<&str>, sample: &SampleScores) -> Option<String> {
    let differs = [
        ("text_digest", row.text != sample.text),
        (
            "sample_digest",
            digest.is_some_and(|digest| sample.sample.map(|digest| digest.hexadecimal()) != Some(digest.into())),
        ),
        ("label", row.member != sample.member),
        ("group", row.group != sample.group),
        ("cluster", row.cluster != sample.cluster),
        ("id", row.id.is_some() && row.id != sample.id),
        ("document", row.document.is_some() && row.document != sample.document),
    ];
    let (field, _) = differs.into_iter().find(|(_, differs)| *differs)?;
    Some(format!("line {}: `{field}` is not that of the sample", line + 1))
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
) -> Result<RecomputedReport<AuditReport>, RecomputationError> {
    let claimed: Vec<DerivedFields> = results.rows.iter_mut().map(DerivedFields::take).collect();
    let is_stored = matches!(request.evidence.calibration, Some(CalibrationSource::Stored(_)));
    let is_decided = !is_stored || known_works.is_some();
    if is_decided {
        add_decisions(request, &mut results, known_works.as_ref()).map_err(AuditFailure::from)?;
    }
    let primary = results.place(request.evidence.primary.as_ref());
    let has_texts = texts.is_some();
    match (results.labels(), texts) {
        (Some(_), Some(texts)) => {
            let clusters = clusters(&results.rows);
            add_blind_findings(&mut results, primary, &texts, &clusters, |_| true, wanted);
        }
        (Some(labels), None) => {
            results.rows.iter_mut().zip(&claimed).for_each(|(row, claimed)| row.log_odds = claimed.log_odds);
            results.comparability = comparability_by_rows(&results, &labels, primary);
            if let Some(blind) = &mut results.blind {
                blind.lengths.scored_tokens = scored_tokens_auroc(&results.rows, &labels);
            }
        }
        (None, _) => (results.blind, results.comparability) = (None, comparability),
    }
    add_posteriors(request, &mut results);
    let differing = results.rows.iter().zip(&claimed).enumerate().filter_map(|(line, (row, claimed))| {
        let field = claimed.difference(row, is_decided, has_texts)?;
        Some(format!("line {}: `{field}` is not what the scores of all lines make it", line + 1))
    });
    line_faults.extend(differing);
    let report = build_report(request, &results, wanted)?;
    Ok(RecomputedReport { report, line_faults })
}

/// The first row of each distinct text.
fn distinct_rows(rows: &[SampleScores]) -> Vec<usize> {
    let mut seen = HashSet::<TextDigest>::new();
    (0..rows.len()).filter(|&row| seen.insert(rows[row].text)).collect()
}

fn scored_tokens_auroc(rows: &[SampleScores], labels: &[bool]) -> Option<f64> {
    let sample = |row: usize| LabelledScore { score: rows[row].scored_tokens as f64, member: labels[row] };
    auroc(&distinct_rows(rows).into_iter().map(sample).collect::<Vec<_>>()).ok()
}

/// The separation of the lists by the log-odds of the lines; `None` if the lines have none.
fn comparability_by_rows(results: &AuditResults, labels: &[bool], primary: Option<usize>) -> Option<Comparability> {
    fn selected<T: Copy>(distinct: &[usize], all: &[T]) -> Vec<T> {
        distinct.iter().map(|&row| all[row]).collect()
    }
    let rows = &results.rows;
    let distinct = distinct_rows(rows);
    let log_odds: Option<Vec<f64>> = distinct.iter().map(|&row| rows[row].log_odds).collect();
    let digests: Vec<TextDigest> = rows.iter().map(|row| row.text).collect();
    let clustered = ClusteredTexts::new(
        &selected(&distinct, labels),
        &selected(&distinct, &clusters(rows)),
        &selected(&distinct, &strata(rows)),
        &selected(&distinct, &digests),
    );
    let is_scored = |text: usize| primary.is_none_or(|place| rows[distinct[text]].scores[place].is_some());
    Comparability::of_log_odds(&log_odds?, &clustered, &is_scored)
}
