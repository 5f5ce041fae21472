//! The report of a test for people.

use super::evidence::{stated, verdict};
use crate::audits::{TestMethod, TestReport, TestVerdict};
use std::fmt::Write;

/// One line a method, then what was left out, the controls, the verdict and the warnings.
pub fn render(report: &TestReport) -> String {
    // Writing to a String cannot fail.
    let mut out = String::new();
    let (model, kind, total) = (&report.provenance.model, report.kind, report.samples.total);
    let excluded: usize = report.samples.exclusions.iter().map(|exclusion| exclusion.samples).sum();
    let _ = writeln!(out, "{model}: test of kind {kind}, {total} texts, {excluded} excluded\n");
    let labels = report.methods.iter().map(|method| method.method.label.chars().count());
    let width = labels.max().unwrap_or(0).max(6);
    let _ = writeln!(out, "{:width$}  {:>7}  {:>9}  {:>10}  statistic", "method", "tested", "p", "adjusted p");
    for method in &report.methods {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2e}"));
        let (label, tested) = (&method.method.label, method.tested);
        let (p_value, adjusted) = (number(method.p_value), number(method.p_value_adjusted));
        let _ = writeln!(out, "{label:width$}  {tested:>7}  {p_value:>9}  {adjusted:>10}  {}", statistic(method));
    }
    for method in report.methods.iter().filter(|method| method.left_out > 0) {
        let _ = writeln!(out, "left out of {}: {}", method.method.label, method.left_out);
    }
    for (method, control) in report.methods.iter().filter_map(|method| Some((method, method.control.as_ref()?))) {
        let interval = control.interval.map_or(String::new(), |[low, high]| format!(" ({low:+.3} to {high:+.3})"));
        let label = &method.method.label;
        let _ = writeln!(out, "{label} beside the control {}: {:+.3}{interval}", control.model, control.difference);
    }
    for (method, beyond) in report.methods.iter().filter_map(|method| Some((method, method.beyond_control.as_ref()?))) {
        let p_value = beyond.p_value.map_or("no p-value".to_owned(), |p_value| format!("p = {p_value:.2e}"));
        let under =
            beyond.control_p_value.map_or(String::new(), |p_value| format!(", under it alone p = {p_value:.2e}"));
        let _ = writeln!(out, "{} beyond the control {}: {p_value}{under}", method.method.label, beyond.model);
    }
    if let Some(words) = report.blind.as_ref().and_then(|blind| blind.words.as_ref()) {
        let _ = writeln!(
            out,
            "without a model: AUROC of the words {:.3} (p = {:.3}, shift: {})",
            words.auroc, words.p_value, words.shift
        );
    }
    if let Some(commitment) = &report.commitment {
        let _ = writeln!(out, "commitment: {}", if commitment.matches { "matches" } else { "does not match" });
    }
    out.push_str(&match &report.verdict {
        TestVerdict::Lists(lists) => verdict(lists),
        TestVerdict::Units(units) => {
            let state = format!("{} ({}, {})", units.state, units.reason, units.design);
            stated(&state, &units.sentence, &units.assumptions)
        }
    });
    for warning in &report.warnings {
        let _ = writeln!(out, "\nwarning: {}", warning.detail);
    }
    out
}

/// The statistic of a method in words.
fn statistic(method: &TestMethod) -> String {
    let statistics = &method.statistics;
    let mut parts = Vec::new();
    if let Some(test) = statistics.mann_whitney {
        let (suspects, held_out) = (statistics.suspects.unwrap_or(0), statistics.held_out.unwrap_or(0));
        parts.push(format!("AUROC {:.3}, {suspects} suspects against {held_out}", test.auroc));
    }
    parts.extend(statistics.welch.map(|test| format!("Welch's t {:.2} (p = {:.2e})", test.statistic, test.p_value)));
    parts.extend(statistics.permutation.map(|test| format!("mean difference {:+.4}", test.mean)));
    parts.extend(statistics.canary_rank.map(|test| {
        let suffices =
            test.would_suffice.map_or(String::new(), |count| format!("; about {count} such canaries would suffice"));
        format!(
            "sum of ranks less 1: {} where chance gives {:.1}; {} first{suffices}",
            test.rank_sum, test.expected_rank_sum, test.first
        )
    }));
    parts.extend(statistics.order.map(|test| format!("mean difference {:+.4}", test.mean_difference)));
    parts.extend(method.error.clone());
    parts.join(", ")
}
