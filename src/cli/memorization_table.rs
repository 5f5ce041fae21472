//! A memorization report for people.

use crate::memorization::{ExtractionSummary, MemorizationReport, TextExtraction, WindowShape};
use std::fmt::Write;

/// The columns behind the name.
const COLUMNS: [&str; 5] = ["windows", "greedy", "coverage", "largest log p", "tries for 1/2"];

/// A line a text, one for all of them, the same for the control, then what has no windows, and what it all shows.
#[must_use]
pub fn render(report: &MemorizationReport) -> String {
    let WindowShape { prefix, suffix, stride } = report.windows;
    let (mut out, control) = (String::new(), report.control.as_deref().unwrap_or_default());
    // Writing to a String cannot fail.
    let (id, texts) = (&report.model.id, report.texts.len());
    let _ = write!(out, "{id}: texts {texts}, control {}; windows of {prefix} + {suffix} tokens, ", control.len());
    let _ = writeln!(out, "one every {stride}\n");
    let names = report.texts.iter().chain(control).map(|text| name(text).chars().count());
    let width = names.max().unwrap_or(0).max("all texts".len());
    out.push_str(&line("text", &COLUMNS.map(str::to_owned), width));
    part(&mut out, &report.texts, "all texts", &report.summary.texts, width);
    if let Some(summary) = &report.summary.control {
        out.push('\n');
        part(&mut out, control, "control", summary, width);
    }
    for (kind, texts) in [("", report.texts.as_slice()), ("control: ", control)] {
        for (text, error) in texts.iter().filter_map(|text| Some((text, text.error.as_ref()?))) {
            let _ = write!(out, "\n{kind}{}: {}: {}", name(text), error.code, error.detail);
        }
    }
    let _ = writeln!(out, "\n{}", report.summary.reading);
    out
}

/// The lines of some texts, and the one of all of them.
fn part(out: &mut String, texts: &[TextExtraction], all: &str, summary: &ExtractionSummary, width: usize) {
    for text in texts.iter().filter(|text| !text.windows.is_empty()) {
        let largest = text.largest_log_p;
        let tries = text.windows.iter().filter_map(|window| window.tries_for_half).min();
        let cells = cells(text.windows.len(), text.greedy_windows, text.coverage, largest, tries);
        out.push_str(&line(&name(text), &cells, width));
    }
    let ExtractionSummary { windows, greedy_windows, coverage, largest_log_p, tries_for_half, .. } = *summary;
    out.push_str(&line(all, &cells(windows, greedy_windows, coverage, largest_log_p, tries_for_half), width));
}

fn cells(
    windows: usize,
    greedy: usize,
    coverage: Option<f64>,
    largest: Option<f64>,
    tries: Option<u64>,
) -> [String; 5] {
    let none = || "-".to_owned();
    [
        windows.to_string(),
        greedy.to_string(),
        coverage.map_or_else(none, |coverage| format!("{:.1} %", coverage * 100.0)),
        largest.map_or_else(none, |largest| format!("{largest:.2}")),
        tries.map_or_else(none, |tries| tries.to_string()),
    ]
}

fn line(name: &str, cells: &[String; 5], width: usize) -> String {
    let cells: Vec<String> =
        cells.iter().zip(COLUMNS).map(|(cell, head)| format!("{cell:>0$}", head.len().max(8))).collect();
    format!("{name:width$}  {}\n", cells.join("  "))
}

/// The id of a text, or its place.
fn name(text: &TextExtraction) -> String {
    text.id.as_ref().map_or_else(|| format!("text {}", text.index), ToString::to_string)
}
