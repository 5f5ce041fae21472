//! From the results of an audit to its report.

use super::average::{Averages, group_average};
use super::cautions::{cautions, cautions_of_calibration, cautions_of_evidence, cautions_of_run};
use super::comparison::Comparison;
use super::document::{AuditReport, Excluded, GroupMethod, GroupReport, MethodReport, PlanFindings, SampleCounts};
use super::evidence::{Evidence, unlabelled_verdict};
use super::findings::{MethodFindings, VersusBaseline};
use super::provenance::provenance;
use super::seed_families::seed_summaries;
use crate::audits::cluster_ids::dense;
use crate::audits::error::AuditFailure;
use crate::audits::exclusions::{self, MAX_NAMED, label_and_code, listed_errors};
use crate::audits::metric_options::AverageOver;
use crate::audits::request::AuditRequest;
use crate::audits::results::{AuditResults, SampleScores};
use mia::methods::LabelledMethod;
use mia::statistics::holm;
use std::collections::HashMap;
use std::sync::Arc;

/// Puts the report together; it is of no use once it is not `wanted` any more.
///
/// # Errors
/// [`AuditFailure::ForeignResults`] where the results do not fit together.
pub fn build_report(
    request: &AuditRequest,
    results: &AuditResults,
    wanted: &dyn Fn() -> bool,
) -> Result<AuditReport, AuditFailure> {
    if !fit(results) {
        return Err(AuditFailure::ForeignResults);
    }
    let everyone: Vec<usize> = (0..results.rows.len()).collect();
    let group = |(group, rows): (&str, Vec<usize>)| group_report(request, results, group, &rows, wanted);
    let mut warnings = cautions(request, results, &everyone);
    warnings.extend(cautions_of_run(results));
    let groups: Vec<GroupReport> = groups(&results.rows).into_iter().map(group).collect();
    let averaged = request.metrics.average.contains(&AverageOver::Group);
    let findings = compare(request, results, &everyone).findings(wanted).into_iter();
    let average = |place: usize| {
        let separations = groups.iter().map(|group| group.methods.get(place)?.findings.separation.as_ref());
        Averages { group: group_average(&separations.collect::<Vec<_>>()) }
    };
    let calibrated = results.calibration.as_ref();
    let evidence = Evidence::new(request, results);
    let tests = evidence.as_ref().map_or(Vec::new(), |evidence| evidence.permutation_tests(wanted));
    let method = |(place, (method, findings)): (usize, (&LabelledMethod, MethodFindings))| {
        let tests = tests.get(place).copied().unwrap_or_default();
        MethodReport {
            method: method.clone(),
            p_value: tests.auroc.map(|test| test.p_value),
            p_value_adjusted: tests.auroc.map(|test| test.p_value_adjusted),
            auroc_stratified: evidence.as_ref().and_then(|evidence| evidence.stratified(place)),
            control: evidence.as_ref().and_then(|evidence| evidence.control(place, method, tests)),
            calibration: calibrated.and_then(|calibrated| calibrated.methods.get(place).cloned().flatten()),
            average: (averaged && findings.separation.is_some()).then(|| average(place)),
            findings,
        }
    };
    let mut methods: Vec<MethodReport> = findings.enumerate().map(method).collect();
    adjust(&mut methods);
    let verdict = match &evidence {
        Some(evidence) => evidence.verdict(&methods),
        None => unlabelled_verdict(request, results),
    };
    let clusters = cluster_sizes(results);
    warnings.extend(cautions_of_calibration(request, results));
    warnings.extend(cautions_of_evidence(request, results, verdict.as_ref()));
    Ok(AuditReport {
        samples: SampleCounts {
            total: results.rows.len(),
            members: count(results, &everyone, true),
            non_members: count(results, &everyone, false),
            clusters: clusters.len(),
            largest_cluster: clusters.values().copied().max().unwrap_or(0),
            excluded: excluded(results),
            exclusions: exclusions::count(results, listed_errors(results).map(|(_, error)| error)),
        },
        seeds: seed_summaries(&methods),
        splits: results.splits.clone(),
        methods,
        groups,
        position_profile: results.profile.rows.clone(),
        positions_left_out: results.profile.left_out,
        selected_tokens: results.selected_tokens.clone(),
        blind: results.blind.clone(),
        prior_test: results.prior_test,
        decisions: calibrated.and_then(|calibrated| calibrated.decisions.clone()),
        dataset_test: calibrated.and_then(|calibrated| calibrated.dataset_test),
        verdict,
        warnings,
        usage: results.usage,
        plan: PlanFindings {
            planned: request.evidence.plan.is_some(),
            cited: request.evidence.plan.clone(),
            earlier_audits: None,
        },
        provenance: provenance(request, results),
    })
}

/// The baseline comparisons adjusted for their number.
fn adjust(methods: &mut [MethodReport]) {
    let versus = methods.iter_mut().filter_map(|method| method.findings.versus_baseline.as_mut());
    let mut tested: Vec<(&mut VersusBaseline, f64)> =
        versus.filter_map(|versus| versus.p_value.map(|p_value| (versus, p_value))).collect();
    let adjusted = holm(&tested.iter().map(|(_, p_value)| *p_value).collect::<Vec<_>>());
    for ((versus, _), adjusted) in tested.iter_mut().zip(adjusted) {
        versus.p_value_adjusted = Some(adjusted);
    }
}

fn cluster_sizes(results: &AuditResults) -> HashMap<usize, usize> {
    let mut sizes = HashMap::new();
    for cluster in dense(results.rows.iter().map(|row| row.cluster)) {
        *sizes.entry(cluster).or_default() += 1;
    }
    sizes
}

/// True if each row fits the columns and there is a column for each baseline.
fn fit(results: &AuditResults) -> bool {
    let columns = results.columns.len();
    results.rows.iter().all(|row| row.fits(&results.columns, &results.error_reasons))
        && results.columns.iter().all(|column| column.baseline.is_none_or(|baseline| baseline < columns))
}

fn group_report(
    request: &AuditRequest,
    results: &AuditResults,
    group: &str,
    rows: &[usize],
    wanted: &dyn Fn() -> bool,
) -> GroupReport {
    let profile = results.group_profiles.get(group);
    GroupReport {
        group: group.to_owned(),
        total: rows.len(),
        members: count(results, rows, true),
        non_members: count(results, rows, false),
        methods: (compare(request, results, rows).findings(wanted).into_iter())
            .map(|(method, findings)| GroupMethod { label: Arc::clone(&method.label), findings })
            .collect(),
        position_profile: profile.map(|profile| profile.rows.clone()),
        positions_left_out: profile.map_or(0, |profile| profile.left_out),
        warnings: cautions(request, results, rows),
    }
}

/// The methods on some of the samples.
fn compare<'a>(request: &'a AuditRequest, results: &'a AuditResults, rows: &[usize]) -> Comparison<'a> {
    let rows: Vec<&SampleScores> = rows.iter().map(|&row| &results.rows[row]).collect();
    Comparison::new(&results.columns, &request.metrics, &rows)
}

fn count(results: &AuditResults, rows: &[usize], member: bool) -> usize {
    rows.iter().filter(|row| results.rows[**row].member == Some(member)).count()
}

/// The groups in the order in which they appear, each with its samples.
fn groups(samples: &[SampleScores]) -> Vec<(&str, Vec<usize>)> {
    let (mut groups, mut places) = (Vec::<(&str, Vec<usize>)>::new(), HashMap::new());
    for (row, sample) in samples.iter().enumerate() {
        let Some(group) = sample.group.as_deref() else { continue };
        let place = *places.entry(group).or_insert(groups.len());
        match groups.get_mut(place) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    groups
}

/// The first samples without a score.
fn excluded(results: &AuditResults) -> Vec<Excluded> {
    let named = listed_errors(results).take(MAX_NAMED).map(|(index, error)| {
        let (label, code) = label_and_code(results, error);
        Excluded { index, id: results.rows[index].id.clone(), label, code }
    });
    named.collect()
}
