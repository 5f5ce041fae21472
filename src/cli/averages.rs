//! The means over groups of an audit's report, for people.

use crate::audits::{AuditReport, GroupAverage};
use std::fmt::Write;

/// One line a method: how many groups are in the mean, then the means; nothing where they were not asked for.
pub fn table(report: &AuditReport, targets: &[f64]) -> String {
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
