//! The report of a memorization job for people: what it shows first, then a line a text and a strip along it.

use super::report_format::{readable, wrapped};
use super::text_table::{TextColumn, TextTable};
use crate::memorization::{
    ExtractionSummary, ExtractionWindow, LEAST_PROBABILITY, MemorizationReport, TextContinuation, TextExtraction,
    WindowPasses, WindowShape,
};
use crate::wire::number_of;
use std::fmt::Write;

/// The width that the name of a text may be cut to.
const NAME: usize = 20;
/// Cells of a strip.
const STRIP: usize = 60;
/// Maximum number of strips, of continuations and of longest runs.
const STRIPS: usize = 10;
/// Maximum number of texts of the control that have a line each.
const CONTROL_LINES: usize = 10;

/// The conclusion, then a line a text, one for all of them, the same for the control, strips, and the texts without windows.
pub fn render(report: &MemorizationReport, width: Option<usize>) -> String {
    let WindowShape { prefix, suffix, stride, passes } = report.windows;
    let whole_control = report.control.as_deref().unwrap_or_default();
    let control = if whole_control.len() > CONTROL_LINES { &[] } else { whole_control };
    let mut out = format!("{}\n", wrapped(&report.summary.reading, width));
    let (id, texts) = (&report.model.id, number_of(report.texts.len(), "text"));
    let passes = if passes == WindowPasses::Separate { ", each a pass of its own" } else { "" };
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{id}: {texts}, {} of the control", whole_control.len());
    let _ = writeln!(out, "windows of {prefix} + {suffix} tokens, one every {stride}{passes}\n");
    let has_p_values = report.summary.known_works.is_some();
    let numbers = ["windows", "greedy", "coverage", "longest run", "largest log p"].into_iter();
    let numbers = numbers.chain(has_p_values.then_some("p-value")).chain(["tries for 1/2"]).map(TextColumn::numbers);
    let mut table = TextTable::new([TextColumn::words("text").cut_to(NAME)].into_iter().chain(numbers));
    add(&mut table, &report.texts, ("all texts", &report.summary.texts), has_p_values);
    if let Some(summary) = &report.summary.control {
        add(&mut table, control, ("control", summary), has_p_values);
    }
    out.push_str(&table.render(width));
    out.push_str(&strips(&report.texts));
    for (kind, texts) in [("", report.texts.as_slice()), ("control: ", whole_control)] {
        for (text, error) in texts.iter().filter_map(|text| Some((text, text.error.as_ref()?))) {
            let fault = format!("{kind}{}: {}: {}", name(text), error.code, error.detail);
            let _ = write!(out, "\n{}", wrapped(&fault, width));
        }
    }
    let continuations = report.texts.iter().filter_map(|text| Some((text, text.continuation.as_ref()?)));
    for (text, continuation) in continuations.take(STRIPS) {
        let _ = write!(out, "\n{}", wrapped(&format!("{}: {}", name(text), continued(continuation)), width));
    }
    let runs = report.texts.iter().filter_map(|text| Some((text, text.longest_run.as_ref()?.text.as_ref()?)));
    for (text, run) in runs.take(STRIPS) {
        let _ = write!(out, "\n{}", wrapped(&format!("{}, longest run: {}", name(text), readable(run)), width));
    }
    out
}

/// The lines of some texts, and the one of all of them.
fn add(
    table: &mut TextTable,
    texts: &[TextExtraction],
    (all, summary): (&str, &ExtractionSummary),
    has_p_values: bool,
) {
    for text in texts.iter().filter(|text| !text.windows.is_empty()) {
        let summary = ExtractionSummary::new(std::slice::from_ref(text));
        table.add([name(text)].into_iter().chain(cells(&summary, has_p_values.then_some(text.p_value))));
    }
    table.add([all.to_owned()].into_iter().chain(cells(summary, has_p_values.then_some(None))));
}

/// The numbers of a line; `p_value` is `None` where there is no such column.
fn cells(summary: &ExtractionSummary, p_value: Option<Option<f64>>) -> impl Iterator<Item = String> {
    let ExtractionSummary { windows, greedy_windows, coverage, longest_run, largest_log_p, tries_for_half, .. } =
        *summary;
    let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
    let numbers = [
        windows.to_string(),
        greedy_windows.to_string(),
        or_dash(coverage.map(|coverage| format!("{:.1} %", coverage * 100.0))),
        or_dash(longest_run.map(|tokens| tokens.to_string())),
        or_dash(largest_log_p.map(|largest| format!("{largest:.2}"))),
    ];
    let p_value = p_value.map(|p_value| or_dash(p_value.map(|p_value| format!("{p_value:.4}"))));
    numbers.into_iter().chain(p_value).chain([or_dash(tries_for_half.map(|tries| tries.to_string()))])
}

/// A line for each of the first texts that shows where its probable windows are; nothing if no text has one.
fn strips(texts: &[TextExtraction]) -> String {
    let texts = || texts.iter().filter(|text| !text.windows.is_empty()).take(STRIPS);
    if !texts().any(|text| text.windows.iter().any(ExtractionWindow::is_covered)) {
        return String::new();
    }
    let mut out = format!(
        "\n  along the text: \u{2588} greedy, \u{2593} p from {LEAST_PROBABILITY}, \u{2592} p from 1e-10, \u{2591} less\n"
    );
    for text in texts() {
        let _ = writeln!(out, "  {}  {}", strip(text), name(text));
    }
    out
}

/// The most probable window of each part of a text.
fn strip(text: &TextExtraction) -> String {
    let mut cells = [0; STRIP];
    for window in &text.windows {
        let level = match window {
            window if window.greedy => 4,
            window if window.is_covered() => 3,
            window if window.log_p >= 1e-10f64.ln() => 2,
            _ => 1,
        };
        let cell = |place: usize| (place * STRIP / text.characters.max(1)).min(STRIP - 1);
        let shown = cells.get_mut(cell(window.suffix_start)..=cell(window.end.saturating_sub(1)));
        for cell in shown.into_iter().flatten() {
            *cell = level.max(*cell);
        }
    }
    cells.map(|level| [' ', '\u{2591}', '\u{2592}', '\u{2593}', '\u{2588}'][level]).iter().collect()
}

/// A continuation in words, with the text that the model wrote.
fn continued(continuation: &TextContinuation) -> String {
    let TextContinuation { seed_end, verbatim_tokens, matching_words, words, text, blocks, .. } = continuation;
    let tokens = number_of(continuation.tokens, "token");
    let ended = if continuation.end_of_text { ", where the model ended it" } else { "" };
    let (words, blocks) = (number_of(*words, "word"), number_of(blocks.len(), "near-verbatim block"));
    let fault = continuation.error.as_ref().map_or(String::new(), |error| format!(" ({})", error.detail));
    format!(
        "continued greedily from character {seed_end} by {tokens}{ended}: the first {verbatim_tokens} are those of the text, and \
         {matching_words} of {words} are in {blocks}{fault}: {}",
        readable(text)
    )
}

/// The id of a text, or its place.
fn name(text: &TextExtraction) -> String {
    text.id.as_ref().map_or_else(|| format!("text {}", text.index), |id| readable(&id.to_string()))
}
