//! Report of an audit: a pure function of its request and its results.

mod cautions;
mod comparison;
mod document;
mod evidence;
mod provenance;

pub use cautions::{caution_of_quantization, cautions_of_evidence};
pub use document::{
    AuditReport, Averages, Excluded, GroupAverage, GroupMethod, GroupReport, MeanTpr, MethodFindings, MethodReport,
    SampleCounts, SeedSpread, SeedSummary, Separation, VersusBaseline,
};
pub use evidence::Evidence;
pub use provenance::{ExpandedRequest, OtherModel, Provenance, provenance};

use crate::audits::clusters::row_clusters;
use crate::audits::error::AuditFailure;
use crate::audits::request::{AuditRequest, AverageOver};
use crate::audits::results::{AuditResults, MAX_NAMED, SampleScores};
use cautions::{cautions, cautions_of_calibration, cautions_of_run};
use comparison::Comparison;
use document::PlanFindings;
use evidence::unlabelled_verdict;
use indexmap::IndexMap;
use mia::methods::LabelledMethod;
use mia::statistics::{TprAtFpr, holm};
use std::collections::HashSet;
use std::sync::Arc;

/// Puts the report together; it is of no use once it is not `wanted` any more. Fails where the results do not fit together.
pub fn build_report(
    request: &AuditRequest,
    results: &AuditResults,
    wanted: &dyn Fn() -> bool,
) -> Result<AuditReport, AuditFailure> {
    if !results.fit() {
        return Err(AuditFailure::ForeignResults);
    }
    let everyone: Vec<&SampleScores> = results.rows.iter().collect();
    let mut warnings = cautions(request, results, &everyone);
    warnings.extend(caution_of_quantization(&results.model));
    warnings.extend(cautions_of_run(results));
    let mut groups: IndexMap<&str, Vec<&SampleScores>> = IndexMap::new();
    for row in &results.rows {
        if let Some(group) = row.group.as_deref() {
            groups.entry(group).or_default().push(row);
        }
    }
    let group = |(group, rows): (&str, Vec<&SampleScores>)| group_report(request, results, group, &rows, wanted);
    let groups: Vec<GroupReport> = groups.into_iter().map(group).collect();
    let averaged = request.metrics.average.contains(&AverageOver::Group);
    let average = |place: usize| {
        let separations = groups.iter().map(|group| group.methods.get(place)?.findings.separation.as_ref());
        Averages { group: group_average(&separations.collect::<Vec<_>>()) }
    };
    let calibrated = results.calibration.as_ref();
    let evidence = Evidence::new(request, results, HashSet::new());
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
    let findings = Comparison::new(&results.columns, &request.metrics, &everyone).findings(wanted);
    let mut methods: Vec<MethodReport> = findings.into_iter().enumerate().map(method).collect();
    adjust_by_holm(methods.iter_mut().filter_map(|method| {
        let versus = method.findings.versus_baseline.as_mut()?;
        Some((versus.p_value?, &mut versus.p_value_adjusted))
    }));
    let verdict = match &evidence {
        Some(evidence) => evidence.verdict(&methods),
        None => unlabelled_verdict(request, results),
    };
    let clusters = row_clusters(&results.rows);
    warnings.extend(cautions_of_calibration(request, results));
    warnings.extend(cautions_of_evidence(request, results, verdict.as_ref()));
    let excluded = results.listed_errors().take(MAX_NAMED).map(|(index, error)| {
        let (label, code) = results.label_and_code(error);
        Excluded { index, id: results.rows[index].id.clone(), label, code }
    });
    Ok(AuditReport {
        samples: SampleCounts {
            total: everyone.len(),
            members: count(&everyone, true),
            non_members: count(&everyone, false),
            clusters: clusters.len(),
            largest_cluster: clusters.iter().map(|cluster| cluster.texts).max().unwrap_or(0),
            excluded: excluded.collect(),
            exclusions: results.exclusions(results.listed_errors().map(|(_, error)| error)),
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
        works: calibrated.map_or(Vec::new(), |calibrated| calibrated.works.clone()),
        shared_text: calibrated.and_then(|calibrated| calibrated.shared_text.clone()),
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

/// Adjusts p-values for their number.
pub fn adjust_by_holm<'a>(tested: impl Iterator<Item = (f64, &'a mut Option<f64>)>) {
    let (p_values, places): (Vec<f64>, Vec<&mut Option<f64>>) = tested.unzip();
    places.into_iter().zip(holm(&p_values)).for_each(|(place, adjusted)| *place = Some(adjusted));
}

fn group_report(
    request: &AuditRequest,
    results: &AuditResults,
    group: &str,
    rows: &[&SampleScores],
    wanted: &dyn Fn() -> bool,
) -> GroupReport {
    let profile = results.group_profiles.get(group);
    GroupReport {
        group: group.to_owned(),
        total: rows.len(),
        members: count(rows, true),
        non_members: count(rows, false),
        methods: (Comparison::new(&results.columns, &request.metrics, rows).findings(wanted).into_iter())
            .map(|(method, findings)| GroupMethod { label: Arc::clone(&method.label), findings })
            .collect(),
        position_profile: profile.map(|profile| profile.rows.clone()),
        positions_left_out: profile.map_or(0, |profile| profile.left_out),
        warnings: cautions(request, results, rows),
    }
}

fn count(rows: &[&SampleScores], member: bool) -> usize {
    rows.iter().filter(|row| row.member == Some(member)).count()
}

/// The means of one method's numbers in each group; none of a group without labels.
fn group_average(separations: &[Option<&Separation>]) -> GroupAverage {
    let labelled = separations.iter().flatten();
    let curves: Vec<(f64, &[TprAtFpr])> =
        labelled.filter_map(|separation| Some((separation.auroc?, &*separation.tpr_at_fpr))).collect();
    let targets = curves.first().map_or(0, |(_, rates)| rates.len());
    let rate = |target: usize| {
        let rates = || curves.iter().filter_map(move |(_, rates)| rates.get(target));
        Some(MeanTpr { fpr: rates().next()?.fpr, tpr: mean(rates().map(|rate| rate.tpr))? })
    };
    GroupAverage {
        groups: curves.len(),
        left_out: separations.len() - curves.len(),
        auroc: mean(curves.iter().map(|(auroc, _)| *auroc)),
        tpr_at_fpr: (0..targets).filter_map(rate).collect(),
    }
}

/// `None` of nothing.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_usize, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / count as f64)
}

/// Summarizes the methods that the request asks for with several seeds, if each seed has an AUROC.
fn seed_summaries(methods: &[MethodReport]) -> Vec<SeedSummary> {
    let mut families: Vec<Vec<&MethodReport>> = Vec::new();
    for method in methods.iter().filter(|method| method.method.method.split().is_some()) {
        let is_kin = |family: &&mut Vec<&MethodReport>| {
            family.first().is_some_and(|first| first.method.method.differs_by_seed(&method.method.method))
        };
        match families.iter_mut().find(is_kin) {
            Some(family) => family.push(method),
            None => families.push(vec![method]),
        }
    }
    families.iter().filter(|family| family.len() > 1).filter_map(|family| summary(family)).collect()
}

fn summary(family: &[&MethodReport]) -> Option<SeedSummary> {
    let aurocs: Option<Vec<f64>> =
        family.iter().map(|method| method.findings.separation.as_ref().and_then(|found| found.auroc)).collect();
    let deltas: Option<Vec<f64>> =
        family.iter().map(|method| method.findings.versus_baseline.as_ref().map(|versus| versus.delta)).collect();
    Some(SeedSummary {
        labels: family.iter().map(|method| Arc::clone(&method.method.label)).collect(),
        seeds: family.iter().filter_map(|method| method.method.method.split()).map(|split| split.seed).collect(),
        auroc: SeedSpread::new(aurocs?),
        delta: deltas.map(SeedSpread::new),
    })
}

impl SeedSpread {
    fn new(each: Vec<f64>) -> Self {
        let count = each.len() as f64;
        let mean = each.iter().sum::<f64>() / count;
        let squares: f64 = each.iter().map(|value| (value - mean) * (value - mean)).sum();
        Self { mean, standard_deviation: (squares / (count - 1.0)).sqrt(), each }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_deviation_are_those_of_a_sample() {
        let spread = SeedSpread::new(vec![0.5, 0.7, 0.9]);
        assert!((spread.mean - 0.7).abs() < 1e-12 && (spread.standard_deviation - 0.2).abs() < 1e-12, "{spread:?}");
    }
}
