//! An audit's report for people.

use super::evidence;
use crate::audits::{AuditReport, AuditResults, GroupAverage, MethodFindings, SeedSummary};
use indexmap::IndexMap;
use std::fmt::Write;

/// One line a method, then the same for each group and for the mean over groups, then the verdict and the warnings. Without labels the lines say how the scores are spread.
pub fn render(report: &AuditReport, results: &AuditResults) -> String {
    let (mut out, samples, model) = (String::new(), &report.samples, &report.provenance.model);
    let counts = |total, members, non_members| format!("{total} samples, {members} members, {non_members} non-members");
    // Writing to a String cannot fail.
    let exclusions = exclusions(report);
    if samples.members + samples.non_members == 0 {
        let _ = writeln!(out, "{model}: {} samples without labels, {exclusions}", samples.total);
    } else {
        let counts = counts(samples.total, samples.members, samples.non_members);
        let _ = writeln!(out, "{model}: {counts}, {exclusions}");
    }
    let targets = &report.provenance.request.metrics.fpr_targets;
    if samples.members + samples.non_members == 0 {
        out.push_str(&spreads(results));
    } else {
        out.push_str(&table(report.methods.iter().map(|method| (&*method.method.label, &method.findings)), targets));
    }
    for group in &report.groups {
        let counts = match group.members + group.non_members {
            0 => format!("{} samples", group.total),
            _ => counts(group.total, group.members, group.non_members),
        };
        let _ = writeln!(out, "\n{}: {counts}", group.group);
        out.push_str(&table(group.methods.iter().map(|method| (&*method.label, &method.findings)), targets));
    }
    out.push_str(&averages(report, targets));
    for SeedSummary { labels, seeds, auroc, delta } in &report.seeds {
        let _ = write!(out, "\n{} and {} more seeds: AUROC ", labels[0], seeds.len() - 1);
        let _ = write!(out, "{:.3} +- {:.3}", auroc.mean, auroc.standard_deviation);
        let gain = delta
            .as_ref()
            .map(|delta| format!(", {:+.3} +- {:.3} vs. before tuning", delta.mean, delta.standard_deviation));
        let _ = writeln!(out, "{}", gain.unwrap_or_default());
    }
    out.push_str(&evidence::render(report));
    out.push_str(&plan(report));
    for warning in &report.warnings {
        let _ = write!(out, "\nwarning: {}", warning.detail);
    }
    for group in &report.groups {
        for warning in &group.warnings {
            let _ = write!(out, "\nwarning: {}: {}", group.group, warning.detail);
        }
    }
    if out.contains("\nwarning: ") {
        out.push('\n');
    }
    out
}

fn plan(report: &AuditReport) -> String {
    let planned = report.plan.cited.as_ref().map_or_else(
        || "unplanned: methods, primary and control may have been chosen by their results".to_owned(),
        |plan| format!("planned: {} of {}", plan.id, plan.created),
    );
    format!("{planned}\n")
}

/// Describes the number of missing scores, by reason.
fn exclusions(report: &AuditReport) -> String {
    let mut reasons = IndexMap::<&str, usize>::new();
    for exclusion in &report.samples.exclusions {
        *reasons.entry(&exclusion.code).or_default() += exclusion.samples;
    }
    let total: usize = reasons.values().sum();
    let reasons: Vec<String> = reasons.iter().map(|(code, count)| format!("{count} {code}")).collect();
    if reasons.is_empty() { "0 exclusions".to_owned() } else { format!("{total} exclusions ({})", reasons.join(", ")) }
}

/// Of each method the number of its scores, and quantiles of them: what is known without labels.
fn spreads(results: &AuditResults) -> String {
    let width = results.listed().map(|(_, column)| column.method.label.chars().count()).max().unwrap_or(0).max(6);
    let names = ["lowest", "10 %", "median", "90 %", "highest"].map(|name| format!("  {name:>9}")).concat();
    let mut out = format!("\n{:width$}  {:>6}{names}\n", "method", "scored");
    for (place, column) in results.listed() {
        let mut scores: Vec<f64> = results.rows.iter().filter_map(|row| row.scores[place]).collect();
        scores.sort_by(f64::total_cmp);
        // The score below which at most this part of the others lies.
        let quantile = |part: f64| scores.get(((scores.len().saturating_sub(1)) as f64 * part).round() as usize);
        let cells = [0.0, 0.1, 0.5, 0.9, 1.0].map(|part| match quantile(part) {
            Some(score) => format!("  {score:>9.3}"),
            None => format!("  {:>9}", "-"),
        });
        let _ = writeln!(out, "{:width$}  {:>6}{}", column.method.label, scores.len(), cells.concat());
    }
    out
}

/// The rows of some methods, by label.
fn table<'a>(methods: impl Iterator<Item = (&'a str, &'a MethodFindings)> + Clone, targets: &[f64]) -> String {
    let width = methods.clone().map(|(label, _)| label.chars().count()).max().unwrap_or(0).max(6);
    if methods.clone().all(|(_, findings)| findings.separation.is_none()) {
        let row = |(label, findings): (&str, &MethodFindings)| format!("{label:width$}  {:>6}\n", findings.scored);
        return format!("\n{:width$}  {:>6}\n", "method", "scored") + &methods.map(row).collect::<String>();
    }
    let mut out = format!("\n{:width$}  {:>6}  {:>6}", "method", "AUROC", "s.e.");
    for target in targets {
        let _ = write!(out, "  {:>10}", format!("TPR@{}%", (target * 1e6).round() / 1e4));
    }
    let _ = writeln!(out, "  {:>7}  vs. baseline", "FPR@95%");
    methods.for_each(|(label, findings)| out.push_str(&row(label, findings, targets, width)));
    out
}

fn row(label: &str, findings: &MethodFindings, targets: &[f64], width: usize) -> String {
    let separation = findings.separation.as_ref();
    let (auroc, error) = (separation.and_then(|s| s.auroc), separation.and_then(|s| s.auroc_standard_error));
    let mut out = format!("{:width$}  {:>6}  {:>6}", label, number(auroc), number(error));
    for place in 0..targets.len() {
        let point = separation.and_then(|s| s.tpr_at_fpr.get(place));
        let _ = write!(out, "  {:>10}", number(point.map(|point| point.tpr)));
    }
    let versus = findings.versus_baseline.as_ref().map(|versus| {
        let p = versus.p_value.map_or(String::new(), |p| format!(" (p = {p:.3})"));
        // Adding 0 turns what rounds to a negative zero into a plain one.
        let delta = (versus.delta * 1e3).round() / 1e3 + 0.0;
        format!("{delta:+.3}{p} on {}", versus.baseline)
    });
    let all_but = number(separation.and_then(|s| s.fpr_at_95_tpr));
    let line = format!("{out}  {all_but:>7}  {}", versus.unwrap_or_default());
    format!("{}\n", line.trim_end())
}

/// One line a method: how many groups are in the mean, then the means; nothing where they were not asked for.
fn averages(report: &AuditReport, targets: &[f64]) -> String {
    let averages =
        report.methods.iter().filter_map(|method| Some((&*method.method.label, &method.average.as_ref()?.group)));
    let rows: Vec<(&str, &GroupAverage)> = averages.collect();
    let Some(width) = rows.iter().map(|(label, _)| label.chars().count().max(6)).max() else { return String::new() };
    let mut out = format!("\nunweighted mean over groups\n\n{:width$}  {:>6}  {:>6}", "method", "groups", "AUROC");
    // Writing to a String cannot fail.
    for target in targets {
        let _ = write!(out, "  {:>10}", format!("TPR@{}%", (target * 1e6).round() / 1e4));
    }
    out.push('\n');
    for (label, average) in rows {
        let _ = write!(out, "{label:width$}  {:>6}  {:>6}", average.groups, number(average.auroc));
        for place in 0..targets.len() {
            let _ = write!(out, "  {:>10}", number(average.tpr_at_fpr.get(place).map(|rate| rate.tpr)));
        }
        out.push('\n');
    }
    out
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}
