//! Runs a test, and makes its report of the scores. The service and the command line share it.

use super::commitment::Commitment;
use super::document::{BeyondControl, TestExclusion, TestMethod, TestReport, TestSamples, TestVerdict, UnitControl};
use super::inference::Inference;
use super::judge::unit_verdict;
use super::layout::{TestKind, TestLayout, UnitKind};
use super::measure::{Measured, distinct_units, test_dataset, test_units, unit_scores};
use crate::audits::clusters::{clusters, row_clusters};
use crate::audits::columns::RowError;
use crate::audits::error::AuditFailure;
use crate::audits::evidence::controls_itself;
use crate::audits::report::{Evidence, adjust_by_holm, caution_of_quantization, cautions_of_evidence, provenance};
use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, MAX_NAMED, SampleScores};
use crate::audits::run_event::RunEvent;
use crate::audits::sample_scoring::{ScoredSamples, score_samples};
use crate::audits::text_lists::{SampleTexts, add_blind_findings};
use crate::datasets::SampleBlocks;
use crate::scorer::Scorer;
use mia::methods::LabelledMethod;
use mia::statistics::{AuditSample, HypothesisError, Warning, WarningCode, warnings};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Request of a test, as plain data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestRequest {
    /// Scoring of the samples; its evidence names the primary method and the control.
    pub scoring: AuditRequest,
    /// Which sample is what.
    pub layout: TestLayout,
    /// Commitment of the client, if it made one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Commitment>,
}

/// Runs a test of these samples, and tells `progress` how far it is. Dropping the future cancels it, and to run the request again
/// resumes it: what was scored before comes from the cache of statistics. What is wrong with one text
/// is part of the report.
pub async fn run_test(
    request: Arc<TestRequest>,
    samples: &SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<TestReport, AuditFailure> {
    let scored = score_samples(&request.scoring, samples, scorer, &progress).await?;
    progress(RunEvent::Testing);
    // Permutations over many documents are no work for the async runtime's threads.
    let ScoredSamples { results, texts, .. } = scored;
    scorer.workers().run_behind(move |wanted| test_report(&request, results, Some(&texts), wanted)).await?
}

/// Puts the report together; it is of no use once it is not `wanted` any more. Without the texts, those are not compared by which two
/// lists differ.
///
/// # Errors
/// [`AuditFailure::ForeignResults`] where the scores do not fit the request.
pub fn test_report(
    request: &TestRequest,
    mut results: AuditResults,
    texts: Option<&SampleTexts>,
    wanted: &dyn Fn() -> bool,
) -> Result<TestReport, AuditFailure> {
    let units = request.layout.units();
    if !results.fit() || units.last().is_some_and(|last| last.end != results.rows.len()) {
        return Err(AuditFailure::ForeignResults);
    }
    let (numbers, all) = (clusters(&results.rows), row_clusters(&results.rows));
    // Texts in a cluster of suspects and held-out texts are neither.
    let mixed: HashSet<usize> = (0..numbers.len()).filter(|&row| all[numbers[row]].is_mixed).collect();
    let kind = request.layout.kind();
    let compares_lists = kind.units().is_none();
    if let Some(texts) = texts.filter(|_| compares_lists) {
        let primary = results.place(request.scoring.evidence.primary.as_ref());
        add_blind_findings(&mut results, primary, texts, &numbers, |row| !mixed.contains(&row), wanted);
    }
    let unit_count = units.len();
    let tested = TestedSamples {
        request,
        results: &results,
        units: distinct_units(units, &results.rows),
        evidence: if compares_lists { Evidence::new(&request.scoring, &results, mixed) } else { None },
    };
    let measured: Vec<_> = results.listed().map(|(place, _)| tested.measure(place, wanted)).collect();
    let methods = tested.methods(&measured, wanted);
    let inference = tested.inference(wanted);
    let verdict = tested.verdict(&measured, &methods, inference.as_ref()).ok_or(AuditFailure::ForeignResults)?;
    let pointer = request.layout.pointers();
    let excluded = tested.excluded().take(MAX_NAMED).map(|(row, error)| {
        let (label, code) = results.label_and_code(error);
        TestExclusion { pointer: pointer(row), id: results.rows[row].id.clone(), label, code }
    });
    Ok(TestReport {
        kind,
        samples: TestSamples {
            total: results.rows.len(),
            mixed_clusters: compares_lists.then(|| all.iter().filter(|cluster| cluster.is_mixed).count()),
            repeated: (!compares_lists).then(|| unit_count - tested.units.len()),
            excluded: excluded.collect(),
            exclusions: results.exclusions(tested.excluded().map(|(_, error)| error)),
        },
        methods,
        inference,
        blind: results.blind.clone(),
        comparability: results.comparability.clone(),
        commitment: request.commitment.clone(),
        verdict,
        warnings: cautions_of_test(&request.scoring, kind, &results),
        usage: results.usage,
        provenance: provenance(&request.scoring, &results),
    })
}

/// The scored samples of a test.
struct TestedSamples<'a> {
    request: &'a TestRequest,
    results: &'a AuditResults,
    units: Vec<Range<usize>>,
    /// Of suspects and held-out texts.
    evidence: Option<Evidence<'a>>,
}

impl TestedSamples<'_> {
    fn methods(&self, measured: &[Result<Measured, HypothesisError>], wanted: &dyn Fn() -> bool) -> Vec<TestMethod> {
        let evidence = self.evidence.as_ref();
        let tests = evidence.map_or(Vec::new(), |evidence| evidence.permutation_tests(wanted));
        let mut methods = Vec::new();
        for ((place, column), measured) in self.results.listed().zip(measured) {
            let error = measured.as_ref().err().map(ToString::to_string);
            let Measured { statistics, tested, p_value, smallest_p_value, .. } = measured.clone().unwrap_or_default();
            let tests = tests.get(methods.len()).copied().unwrap_or_default();
            methods.push(TestMethod {
                method: column.method.clone(),
                tested,
                left_out: self.left_out(place),
                p_value,
                p_value_adjusted: None,
                smallest_p_value,
                statistics,
                control: evidence.and_then(|evidence| evidence.control(place, &column.method, tests)),
                beyond_control: self.beyond_control(place, &column.method, wanted),
                error,
            });
        }
        let primary = self.request.scoring.evidence.primary.as_ref();
        // The primary method stands for itself.
        let others = methods.iter_mut().filter(|method| Some(&method.method.label) != primary);
        adjust_by_holm(others.filter_map(|method| Some((method.p_value?, &mut method.p_value_adjusted))));
        methods
    }

    fn measure(&self, place: usize, wanted: &dyn Fn() -> bool) -> Result<Measured, HypothesisError> {
        match self.request.layout.kind().units() {
            None => {
                let evidence = self.evidence.as_ref().ok_or(HypothesisError::NoValues)?;
                test_dataset(&evidence.scores(place), &evidence.clustered)
            }
            Some(kind) => self.measure_units(kind, |row| row.scores[place], wanted),
        }
    }

    fn measure_units(
        &self,
        kind: UnitKind,
        score: impl Fn(&SampleScores) -> Option<f64>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Measured, HypothesisError> {
        test_units(kind, unit_scores(&self.units, &self.results.rows, score), wanted)
    }

    /// The test of documents, canaries or shards by how far each text's score exceeds that under the control.
    fn beyond_control(
        &self,
        place: usize,
        method: &LabelledMethod,
        wanted: &dyn Fn() -> bool,
    ) -> Option<BeyondControl> {
        let (model, kind) = (self.results.control.as_ref()?.id.clone(), self.request.layout.kind().units()?);
        let control = |row: &SampleScores| row.control_score(place, method);
        let beyond = |row: &SampleScores| match controls_itself(method) {
            true => row.scores[place],
            false => Some(row.scores[place]? - control(row)?),
        };
        let control_p_value = self.measure_units(kind, control, wanted).ok().and_then(|measured| measured.p_value);
        let measured = self.measure_units(kind, beyond, wanted).unwrap_or_default();
        let Measured { statistics, tested, p_value, .. } = measured;
        Some(BeyondControl { model, tested, p_value, control_p_value, statistics })
    }

    /// The number of units, or of texts of two lists, that a column has no score of.
    fn left_out(&self, place: usize) -> usize {
        let rows = &self.results.rows;
        match self.request.layout.kind().units() {
            None => rows.iter().filter(|row| row.scores[place].is_none()).count(),
            Some(_) => self.units.len() - unit_scores(&self.units, rows, |row| row.scores[place]).len(),
        }
    }

    /// The combination of all methods, of a test that learns one.
    fn inference(&self, wanted: &dyn Fn() -> bool) -> Option<Inference> {
        let TestLayout::Di { seed, .. } = self.request.layout else { return None };
        Some(Inference::new(self.results, self.evidence.as_ref()?, seed, wanted))
    }

    /// The verdict on the combination of all methods, or on the primary one; `None` if the request names none or the results lack it.
    fn verdict(
        &self,
        measured: &[Result<Measured, HypothesisError>],
        methods: &[TestMethod],
        inference: Option<&Inference>,
    ) -> Option<TestVerdict> {
        let committed = self.request.commitment.as_ref().map(|commitment| commitment.matches);
        let lists = ["suspects", "held-out texts"];
        if let Some(inference) = inference {
            return Some(TestVerdict::Lists(Box::new(inference.verdict(self.results, lists, committed))));
        }
        let primary = self.request.scoring.evidence.primary.as_ref()?;
        let number = methods.iter().position(|method| method.method.label == *primary)?;
        let (method, (place, _)) = (&methods[number], self.results.listed().nth(number)?);
        let Some(kind) = self.request.layout.kind().units() else {
            let control = method.control.as_ref();
            let verdict = self.evidence.as_ref()?.list_verdict(lists, place, method.p_value, control, committed);
            return Some(TestVerdict::Lists(Box::new(verdict)));
        };
        let control = self.results.control.as_ref().map(|control| UnitControl {
            model: control.id.clone(),
            digest: control.digest.clone(),
            p_value_beyond: method.beyond_control.as_ref().and_then(|beyond| beyond.p_value),
            p_value_alone: method.beyond_control.as_ref().and_then(|beyond| beyond.control_p_value),
        });
        let measured = measured[number].clone().unwrap_or_default();
        let verdict = unit_verdict(kind, &self.results.model, primary, &measured, committed, control);
        Some(TestVerdict::Units(Box::new(verdict)))
    }

    /// Returns the rows without a score, with their errors. The orders of a shard, which follow each other, count as one.
    fn excluded(&self) -> impl Iterator<Item = (usize, RowError)> {
        let pointer_of = self.request.layout.pointers();
        let (mut last, mut pointer, mut known) = (None, String::new(), HashSet::new());
        let is_new = move |(row, error): &(usize, RowError)| {
            if last.replace(*row) != Some(*row) {
                let this = pointer_of(*row);
                if this != pointer {
                    known.clear();
                }
                pointer = this;
            }
            known.insert(self.results.label_and_code(*error))
        };
        self.results.listed_errors().filter(is_new)
    }
}

/// Warnings of a test. Texts compared with rewrites of themselves are nearly equal and of one length by design.
fn cautions_of_test(request: &AuditRequest, kind: TestKind, results: &AuditResults) -> Vec<Warning> {
    let samples: Vec<AuditSample> = results.rows.iter().map(SampleScores::as_sample).collect();
    let is_of_kind = |warning: &Warning| match warning.code {
        WarningCode::TruncatedTexts => true,
        WarningCode::MixedLengths | WarningCode::LabelConflict => kind.units().is_none(),
        _ => false,
    };
    let mut all: Vec<Warning> = warnings(&samples, &[]).into_iter().filter(is_of_kind).collect();
    all.extend(caution_of_quantization(&results.model));
    if kind.units().is_none() {
        all.extend(cautions_of_evidence(request, results, None));
    }
    all
}
