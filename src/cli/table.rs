//! An audit's report for people.

use crate::jobs::{AuditReport, MethodReport};
use std::fmt::Write;

/// One line a method, then the warnings.
pub fn render(report: &AuditReport) -> String {
    let mut out = String::new();
    let samples = &report.samples;
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{}: {} samples, {} members, {} non-members, {} exclusions",
        report.provenance.model,
        samples.total,
        samples.members,
        samples.non_members,
        samples.excluded.len()
    );
    let width = report.methods.iter().map(|m| m.method.label.len()).max().unwrap_or(0).max(6);
    let targets: Vec<f64> = report.provenance.request.metrics.fpr_targets.clone();
    let _ = write!(out, "\n{:width$}  {:>6}  {:>6}", "method", "AUROC", "s.e.");
    for target in &targets {
        let _ = write!(out, "  {:>10}", format!("TPR@{}%", target * 100.0));
    }
    let _ = writeln!(out, "  {:>7}  vs. baseline", "FPR@95%");
    for method in &report.methods {
        out.push_str(&row(method, &targets, width));
    }
    for warning in &report.warnings {
        let _ = write!(out, "\nwarning: {}", warning.detail);
    }
    if !report.warnings.is_empty() {
        out.push('\n');
    }
    out
}

fn row(method: &MethodReport, targets: &[f64], width: usize) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |v| format!("{v:.3}"));
    let separation = method.separation.as_ref();
    let (auroc, error) = (separation.and_then(|s| s.auroc), separation.and_then(|s| s.auroc_standard_error));
    let mut out = format!("{:width$}  {:>6}  {:>6}", method.method.label, number(auroc), number(error));
    for at in 0..targets.len() {
        let point = separation.and_then(|s| s.tpr_at_fpr.get(at));
        let _ = write!(out, "  {:>10}", number(point.map(|point| point.tpr)));
    }
    let versus = method.versus_baseline.as_ref().map(|v| format!("{:+.3} on {}", v.delta, v.baseline));
    let all_but = number(separation.and_then(|s| s.fpr_at_95_tpr));
    let line = format!("{out}  {all_but:>7}  {}", versus.unwrap_or_default());
    format!("{}\n", line.trim_end())
}
