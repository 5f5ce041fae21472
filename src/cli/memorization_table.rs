//! The report of a memorization job for people: what it shows first, then a line a text.

use super::report_format::wrapped;
use super::text_table::{TextColumn, TextTable};
use crate::memorization::{ExtractionSummary, MemorizationReport, TextExtraction, WindowShape};
use crate::wire::number_of;
use std::fmt::Write;

/// The width that the name of a text may be cut to.
const NAME: usize = 20;

/// The conclusion, then a line a text, one for all of them, the same for the control, and the texts without windows.
pub fn render(report: &MemorizationReport, width: Option<usize>) -> String {
    let WindowShape { prefix, suffix, stride } = report.windows;
    let control = report.control.as_deref().unwrap_or_default();
    let mut out = format!("{}\n", wrapped(&report.summary.reading, width));
    let (id, texts) = (&report.model.id, number_of(report.texts.len(), "text"));
    // Writing to a String cannot fail.
    let _ = write!(out, "{id}: {texts}, {} of the control; ", control.len());
    let _ = writeln!(out, "windows of {prefix} + {suffix} tokens, one every {stride}\n");
    let numbers = ["windows", "greedy", "coverage", "largest log p", "tries for 1/2"].map(TextColumn::numbers);
    let mut table = TextTable::new([TextColumn::words("text").cut_to(NAME)].into_iter().chain(numbers));
    add(&mut table, &report.texts, "all texts", &report.summary.texts);
    if let Some(summary) = &report.summary.control {
        add(&mut table, control, "control", summary);
    }
    out.push_str(&table.render(width));
    for (kind, texts) in [("", report.texts.as_slice()), ("control: ", control)] {
        for (text, error) in texts.iter().filter_map(|text| Some((text, text.error.as_ref()?))) {
            let fault = format!("{kind}{}: {}: {}", name(text), error.code, error.detail);
            let _ = write!(out, "\n{}", wrapped(&fault, width));
        }
    }
    out
}

/// The lines of some texts, and the one of all of them.
fn add(table: &mut TextTable, texts: &[TextExtraction], all: &str, summary: &ExtractionSummary) {
    for text in texts.iter().filter(|text| !text.windows.is_empty()) {
        let tries = text.windows.iter().filter_map(|window| window.tries_for_half).min();
        let cells = cells(text.windows.len(), text.greedy_windows, text.coverage, text.largest_log_p, tries);
        table.add([name(text)].into_iter().chain(cells));
    }
    let ExtractionSummary { windows, greedy_windows, coverage, largest_log_p, tries_for_half, .. } = *summary;
    let cells = cells(windows, greedy_windows, coverage, largest_log_p, tries_for_half);
    table.add([all.to_owned()].into_iter().chain(cells));
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

/// The id of a text, or its place.
fn name(text: &TextExtraction) -> String {
    text.id.as_ref().map_or_else(|| format!("text {}", text.index), ToString::to_string)
}
