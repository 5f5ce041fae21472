//! The works that an audit tests, for people: each among the known works.

use crate::audits::{AuditReport, Decisions, WorkFindings};
use std::fmt::Write;

/// Most characters of a name in the table.
const NAME: usize = 34;

/// A line a work, those with the lowest p-values first; nothing where no text names a document or nothing is known.
pub fn render(report: &AuditReport) -> String {
    let (Some(Decisions { method, fdr, .. }), [_, ..]) = (&report.decisions, &*report.works) else {
        return String::new();
    };
    let mut works: Vec<&WorkFindings> = report.works.iter().collect();
    works.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.score.total_cmp(&a.score)));
    let calibrations = report.methods.iter().filter(|entry| entry.method.label == *method);
    let known =
        calibrations.filter_map(|entry| entry.calibration.as_ref()).map(|calibration| calibration.clusters).max();
    let known = known.unwrap_or(0);
    // Writing to a String cannot fail.
    let mut out =
        format!("\nworks among {known} known works by {method}; listed at a false discovery rate of {fdr}\n\n");
    let _ =
        writeln!(out, "{:NAME$}  {:>8}  {:>9}  {:>5}  {:>7}  listed", "work", "passages", "mean", "above", "p-value");
    for WorkFindings { document, passages, score, known_above, p_value, listed, .. } in works {
        let (name, mark) = (shortened(&document.to_string()), if *listed { "yes" } else { "" });
        let line = format!("{name:NAME$}  {passages:>8}  {score:>9.4}  {known_above:>5}  {p_value:>7.4}  {mark}");
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The end of a long name, which tells files of one folder apart.
fn shortened(name: &str) -> String {
    let length = name.chars().count();
    if length <= NAME {
        return name.to_owned();
    }
    format!("...{}", name.chars().skip(length - NAME + 3).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_name_is_kept() {
        assert_eq!(shortened("a/book.epub"), "a/book.epub");
        let name = format!("{}/chapter-12.txt", "a".repeat(80));
        assert_eq!(shortened(&name).chars().count(), NAME);
        assert!(shortened(&name).starts_with("...") && shortened(&name).ends_with("/chapter-12.txt"));
    }
}
