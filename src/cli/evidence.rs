//! Evidence of an audit or a test, for people: the verdict, the controls, and what the texts alone show.

use super::report_format::{hanging, number, part, signed, wrapped};
use super::text_table::{LABEL, TextColumn, TextTable};
use crate::audits::{BlindFindings, ControlFindings, Decisions};
use crate::wire::number_of;
use mia::statistics::{Comparability, PriorTest};
use serde_json::Value;
use std::fmt::Write;

/// A table of the methods beside the control, and what the texts alone show; nothing without labels.
pub fn render(report: &Value, width: Option<usize>) -> String {
    let mut out = controls(&report["methods"], width);
    out.extend(part(&report["blind"]).map(|findings| blind(&findings)));
    out.extend(part(&report["verdict"]["comparability"]).map(|texts| comparability(&texts)));
    out.extend(part(&report["prior_test"]).map(|test| prior(&test)));
    out.extend(part(&report["decisions"]).map(|list| decisions(&list, width)));
    out
}

/// The state of a verdict, its sentence and what it takes for granted; nothing where there is none.
pub fn verdict(verdict: &Value, width: Option<usize>) -> String {
    let text = |name: &str| verdict[name].as_str().unwrap_or_default();
    if verdict.is_null() {
        return String::new();
    }
    let assumptions = verdict["assumptions"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let assumes: String = assumptions.map(|assumption| wrapped(&format!("assumes: {assumption}"), width)).collect();
    let (state, reason, design) = (text("state"), text("reason"), text("design"));
    format!("verdict: {state} ({reason}, {design})\n{}{assumes}\n", wrapped(text("sentence"), width))
}

/// One line a method that has a control: its AUROC there, the difference, and the p-value for all methods together.
fn controls(methods: &Value, width: Option<usize>) -> String {
    let row = |method: &Value| Some((method["label"].as_str()?.to_owned(), part(&method["control"])?));
    let rows: Vec<(String, ControlFindings)> = methods.as_array().into_iter().flatten().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let numbers = ["control", "difference", "95 % interval", "adjusted p"].map(TextColumn::numbers);
    let mut table = TextTable::new([TextColumn::words("method").cut_to(LABEL)].into_iter().chain(numbers));
    for (label, control) in &rows {
        let interval = control.interval.map_or("-".to_owned(), |[low, high]| format!("{low:+.3} to {high:+.3}"));
        let p_value = control.p_value_adjusted.map_or("-".to_owned(), |p_value| format!("{p_value:.4}"));
        let (auroc, difference) = (number(Some(control.auroc)), signed(control.difference));
        table.add([label.clone(), auroc, difference, interval, p_value]);
    }
    let mut models: Vec<&str> = rows.iter().map(|(_, control)| &*control.model).collect();
    models.dedup();
    let mut out = format!("\nbeside the control {}\n\n{}", models.join(", "), table.render(width));
    for (label, control) in &rows {
        for negative_control in &control.negative_controls {
            let [a, b] = &negative_control.groups;
            let holds =
                if negative_control.holds() { "about nothing, as expected" } else { "where nothing is expected" };
            let difference = signed(negative_control.difference);
            // Writing to a String cannot fail.
            let _ = writeln!(out, "negative control of {label}, {a} against {b}: {difference}, {holds}");
        }
    }
    out
}

pub fn blind(blind: &BlindFindings) -> String {
    let words = match &blind.words {
        Some(words) => format!("{:.3} (p = {:.3}, shift: {})", words.auroc, words.p_value, words.shift),
        None => "-".to_owned(),
    };
    let (tokens, zlib) = (number(blind.lengths.scored_tokens), number(blind.lengths.bytes_per_zlib_byte));
    format!(
        "\nwithout a model: AUROC of the words {words},\n  of the number of tokens {tokens}, of bytes per zlib byte {zlib}\n"
    )
}

fn prior(test: &PriorTest) -> String {
    let PriorTest { positions, early_gap, late_gap, p_value, .. } = test;
    format!(
        "gap between the classes over {}: early {} nats, late {}\n  (p = {p_value:.3} that early is larger)\n",
        number_of(*positions, "position"),
        signed(*early_gap),
        signed(*late_gap)
    )
}

fn decisions(decisions: &Decisions, width: Option<usize>) -> String {
    let Decisions { method, procedure, fdr, tested, rejected, minimum_discoveries, .. } = decisions;
    let tested = number_of(*tested, "distinct text");
    let list = format!(
        "list at a false discovery rate of {fdr} ({procedure}): {rejected} of {tested} by {method}; the shortest possible list has \
         {minimum_discoveries}"
    );
    let mut out = format!("\n{}", hanging(&list, width));
    if let (Some(threshold), Some(bound)) = (decisions.threshold, decisions.fpr_upper_95) {
        let _ = writeln!(out, "scores from {threshold:.4}; false-positive rate there at most {bound:.4} (95 % bound)");
    }
    if let Some(false_discoveries) = decisions.non_members_rejected {
        let _ = writeln!(out, "labelled non-members on it: {false_discoveries}");
    }
    out
}

/// Describes what tells the lists apart without the model: the measures, and the n-grams that separate.
pub fn comparability(texts: &Comparability) -> String {
    let mut out = format!(
        "\nthe texts alone: AUROC {:.3}, upper 95 % bound {:.3}, comparable up to {:.3}\n",
        texts.auroc,
        texts.upper_bound,
        0.5 + texts.margin
    );
    for measure in &texts.measures {
        let ngrams: Vec<String> =
            measure.separating.iter().map(|separating| format!("{:?}", separating.ngram)).collect();
        let ngrams = if ngrams.is_empty() { String::new() } else { format!(": {}", ngrams.join(" ")) };
        let _ = writeln!(out, "  {} {:.3}{ngrams}", measure.measure, measure.auroc);
    }
    out
}
