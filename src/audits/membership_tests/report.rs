//! From the scores of a test to its report. Pure.

use super::commitment::Commitment;
use super::document::{
    BeyondControl, TestBasis, TestExclusion, TestMethod, TestReport, TestSamples, TestVerdict, UnitControl,
};
use super::judge::unit_verdict;
use super::layout::{TestKind, TestLayout, UnitKind};
use super::measure::{Measured, cluster_scores, distinct_units, mixed_clusters, test_dataset, test_units, unit_scores};
use crate::audits::clusters::{clustered, clusters};
use crate::audits::columns::RowError;
use crate::audits::error::AuditFailure;
use crate::audits::evidence::{Effect, Verdict, VerdictBasis, VerdictModel, controls_itself, verdict};
use crate::audits::report::{Evidence, adjust_by_holm, cautions_of_evidence, provenance};
use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, MAX_NAMED, SampleScores};
use crate::audits::run_event::RunEvent;
use crate::audits::sample_scoring::{ScoredSamples, score_samples};
use crate::audits::text_lists::add_blind_findings;
use crate::datasets::SampleBlocks;
use crate::pool::ModelInfo;
use crate::scorer::Scorer;
use mia::methods::LabelledMethod;
use mia::statistics::{AuditSample, ClusteredTexts, HypothesisError, Warning, WarningCode, warnings};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// Puts the report together; it is of no use once it is not `wanted` any more.
///
/// # Errors
/// [`AuditFailure::ForeignResults`] where the scores do not fit the request.
pub fn test_report(
    request: &TestRequest,
    scored: ScoredSamples,
    wanted: &dyn Fn() -> bool,
) -> Result<TestReport, AuditFailure> {
    let ScoredSamples { mut results, texts, .. } = scored;
    let units = request.layout.units();
    let is_whole = units.last().is_none_or(|last| last.end == results.rows.len());
    let all_fit = results.rows.iter().all(|row| row.fits(&results.columns, &results.error_reasons));
    if !is_whole || !all_fit {
        return Err(AuditFailure::ForeignResults);
    }
    let clusters = clusters(&results.rows);
    let kind = request.layout.kind();
    let mixed = mixed_clusters(&results.rows, &clusters);
    if kind == TestKind::Dataset {
        let is_counted = |row: usize| !mixed.contains(&clusters[row]);
        let primary = results.place(request.scoring.evidence.primary.as_ref());
        add_blind_findings(&mut results, primary, &texts, &clusters, is_counted, wanted);
    }
    let unit_count = units.len();
    let tested =
        TestedSamples { request, results: &results, units: distinct_units(units, &results.rows), mixed, clusters };
    let measured = tested.measured(wanted);
    let methods = tested.methods(&measured, wanted);
    let verdict = tested.verdict(&measured, &methods).ok_or(AuditFailure::ForeignResults)?;
    Ok(TestReport {
        kind,
        samples: TestSamples {
            total: results.rows.len(),
            mixed_clusters: (kind == TestKind::Dataset).then_some(tested.mixed.len()),
            repeated: (kind != TestKind::Dataset).then(|| unit_count - tested.units.len()),
            excluded: tested.named(),
            exclusions: results.exclusions(tested.excluded().map(|(_, error)| error)),
        },
        methods,
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
    /// Of each row.
    clusters: Vec<usize>,
    /// Those with suspects and held-out texts.
    mixed: HashSet<usize>,
}

impl TestedSamples<'_> {
    /// The measurement of each listed method.
    fn measured(&self, wanted: &dyn Fn() -> bool) -> Vec<Result<Measured, HypothesisError>> {
        self.results.listed().map(|(place, _)| self.measure(place, wanted)).collect()
    }

    fn methods(&self, measured: &[Result<Measured, HypothesisError>], wanted: &dyn Fn() -> bool) -> Vec<TestMethod> {
        let is_dataset = self.request.layout.kind() == TestKind::Dataset;
        let evidence = is_dataset.then(|| Evidence::new(&self.request.scoring, self.results)).flatten();
        let mixed = (0..self.results.rows.len()).filter(|&row| self.is_mixed(row)).collect();
        let evidence = evidence.map(|evidence| evidence.without(mixed));
        let tests = evidence.as_ref().map_or(Vec::new(), |evidence| evidence.permutation_tests(wanted));
        let mut methods = Vec::new();
        for ((place, column), measured) in self.results.listed().zip(measured) {
            let error = measured.as_ref().err().map(ToString::to_string);
            let measured = measured.clone().unwrap_or_default();
            let Measured { statistics, tested, left_out, p_value, smallest_p_value, .. } = measured;
            let tests = tests.get(methods.len()).copied().unwrap_or_default();
            let control = evidence.as_ref().and_then(|evidence| evidence.control(place, &column.method, tests));
            methods.push(TestMethod {
                method: column.method.clone(),
                tested,
                left_out: if error.is_some() { self.unscored(place) } else { left_out },
                p_value,
                p_value_adjusted: None,
                smallest_p_value,
                statistics,
                control,
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
            None => test_dataset(&self.results.rows, &self.clustered()?, |row| self.is_mixed(row), place),
            Some(kind) => self.measure_units(kind, |row| row.scores[place], wanted),
        }
    }

    fn measure_units(
        &self,
        kind: UnitKind,
        score: impl Fn(&SampleScores) -> Option<f64>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Measured, HypothesisError> {
        let scores = unit_scores(&self.units, &self.results.rows, score);
        let left_out = self.units.len() - scores.len();
        test_units(kind, scores, left_out, wanted)
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

    /// The clusters of suspects and held-out texts.
    fn clustered(&self) -> Result<ClusteredTexts, HypothesisError> {
        let labels = self.results.labels().ok_or(HypothesisError::NoValues)?;
        Ok(clustered(&self.results.rows, &labels))
    }

    fn is_mixed(&self, row: usize) -> bool {
        self.mixed.contains(&self.clusters[row])
    }

    /// Returns the number of units left out of a test that could not be made.
    fn unscored(&self, place: usize) -> usize {
        let rows = &self.results.rows;
        match self.request.layout.kind().units() {
            None => rows.iter().filter(|row| row.scores[place].is_none()).count(),
            Some(_) => self.units.len() - unit_scores(&self.units, rows, |row| row.scores[place]).len(),
        }
    }

    /// The verdict on the primary method; `None` if the request names none or the results lack it.
    fn verdict(&self, measured: &[Result<Measured, HypothesisError>], methods: &[TestMethod]) -> Option<TestVerdict> {
        let primary = self.request.scoring.evidence.primary.as_ref()?;
        let is_primary = |method: &TestMethod| method.method.label == *primary;
        let number = methods.iter().position(is_primary)?;
        let (method, (place, _)) = (&methods[number], self.results.listed().nth(number)?);
        let committed = self.request.commitment.as_ref().map(|commitment| commitment.matches);
        let Some(kind) = self.request.layout.kind().units() else {
            return Some(TestVerdict::Lists(Box::new(self.list_verdict(primary, place, method, committed)?)));
        };
        let ModelInfo { id, digest, adapter, .. } = self.results.model.clone();
        let control = self.results.control.as_ref().map(|control| UnitControl {
            model: control.id.clone(),
            digest: control.digest.clone(),
            p_value_beyond: method.beyond_control.as_ref().and_then(|beyond| beyond.p_value),
            p_value_alone: method.beyond_control.as_ref().and_then(|beyond| beyond.control_p_value),
        });
        Some(TestVerdict::Units(Box::new(unit_verdict(TestBasis {
            kind,
            model: VerdictModel { id, digest, adapter_digest: adapter },
            primary,
            measured: &measured[number].clone().unwrap_or_default(),
            committed,
            control,
        }))))
    }

    /// The verdict on suspects and held-out texts.
    fn list_verdict(
        &self,
        primary: &Arc<str>,
        place: usize,
        method: &TestMethod,
        committed: Option<bool>,
    ) -> Option<Verdict> {
        let clustered = self.clustered().ok()?;
        let scores = cluster_scores(&self.results.rows, &clustered, |row| self.is_mixed(row), place);
        Some(verdict(&VerdictBasis {
            primary,
            model: &self.results.model,
            lists: ["suspects", "held-out texts"],
            clusters: scores.counts(&clustered),
            texts_per_cluster: scores.texts,
            effect: method.p_value.and_then(|p_value| Effect::new(&scores, 0, &clustered, p_value)),
            control: self.results.control.as_ref().map(|control| (control, method.control.as_ref())),
            comparability: self.results.comparability.as_ref(),
            committed,
        }))
    }

    /// Returns the rows without a score, with their errors. The orders of a shard, which follow each other, count as one.
    fn excluded(&self) -> impl Iterator<Item = (usize, RowError)> {
        let places = self.request.layout.places();
        let (mut last, mut pointer, mut known) = (None, String::new(), HashSet::new());
        let is_new = move |(row, error): &(usize, RowError)| {
            if last.replace(*row) != Some(*row) {
                let this = places.pointer(*row);
                if this != pointer {
                    known.clear();
                }
                pointer = this;
            }
            known.insert(self.results.label_and_code(*error))
        };
        self.results.listed_errors().filter(is_new)
    }

    /// The first of them.
    fn named(&self) -> Vec<TestExclusion> {
        let places = self.request.layout.places();
        let named = self.excluded().take(MAX_NAMED).map(|(row, error)| {
            let (label, code) = self.results.label_and_code(error);
            TestExclusion { pointer: places.pointer(row), id: self.results.rows[row].id.clone(), label, code }
        });
        named.collect()
    }
}

/// Warnings of a test. Texts compared with rewrites of themselves are nearly equal and of one length by design.
fn cautions_of_test(request: &AuditRequest, kind: TestKind, results: &AuditResults) -> Vec<Warning> {
    let samples: Vec<AuditSample> = results.rows.iter().map(SampleScores::as_sample).collect();
    let is_of_kind = |warning: &Warning| match warning.code {
        WarningCode::TruncatedTexts => true,
        WarningCode::MixedLengths | WarningCode::LabelConflict => kind == TestKind::Dataset,
        _ => false,
    };
    let mut all: Vec<Warning> = warnings(&samples, &[]).into_iter().filter(is_of_kind).collect();
    if kind == TestKind::Dataset {
        all.extend(cautions_of_evidence(request, results, None));
    }
    all
}

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
