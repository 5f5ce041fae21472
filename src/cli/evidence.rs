//! Evidence of an audit, for people: the controls and the verdict.

use crate::audits::{AuditReport, BlindFindings, ControlFindings, Decisions, MethodReport, Verdict};
use mia::statistics::{Comparability, PriorTest};
use std::fmt::Write;

/// The longest line of the sentence of a verdict.
const WIDTH: usize = 100;

/// A table of the methods beside the control, what the texts alone show, and the verdict; nothing without labels.
pub fn render(report: &AuditReport) -> String {
    let mut out = controls(report);
    out.extend(report.blind.as_ref().map(blind));
    out.extend(report.prior_test.as_ref().map(prior));
    out.extend(report.decisions.as_ref().map(decisions));
    out.extend(report.verdict.as_ref().map(verdict));
    out
}

/// One line a method that has a control: its AUROC there, the difference, and the p-value for all methods together.
fn controls(report: &AuditReport) -> String {
    let row = |method: &MethodReport| {
        method.control.clone().map(|control| (method.method.label.to_string(), control.p_value_adjusted, control))
    };
    let rows: Vec<(String, Option<f64>, ControlFindings)> = report.methods.iter().filter_map(row).collect();
    let Some(width) = rows.iter().map(|(label, ..)| label.chars().count().max(6)).max() else { return String::new() };
    let mut models: Vec<&str> = rows.iter().map(|(.., control)| &*control.model).collect();
    models.dedup();
    // Writing to a String cannot fail.
    let mut out = format!("\nbeside the control {}\n\n", models.join(", "));
    let _ = writeln!(
        out,
        "{:width$}  {:>7}  {:>10}  {:>16}  {:>10}",
        "method", "control", "difference", "95 % interval", "adjusted p"
    );
    for (label, p_value, control) in &rows {
        let auroc = format!("{:.3}", control.auroc);
        let interval = control.interval.map_or("-".to_owned(), |[low, high]| format!("{low:+.3} to {high:+.3}"));
        let p_value = p_value.map_or("-".to_owned(), |p_value| format!("{p_value:.4}"));
        let difference = signed(control.difference);
        let _ = writeln!(out, "{label:width$}  {auroc:>7}  {difference:>10}  {interval:>16}  {p_value:>10}");
    }
    for (label, _, control) in &rows {
        for negative_control in &control.negative_controls {
            let [a, b] = &negative_control.groups;
            let holds =
                if negative_control.holds() { "about nothing, as expected" } else { "where nothing is expected" };
            let _ = writeln!(
                out,
                "negative control of {label}, {a} against {b}: {}, {holds}",
                signed(negative_control.difference)
            );
        }
    }
    out
}

/// Adding 0 turns what rounds to a negative zero into a plain one.
fn signed(value: f64) -> String {
    format!("{:+.3}", (value * 1e3).round() / 1e3 + 0.0)
}

fn blind(blind: &BlindFindings) -> String {
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let words = match &blind.words {
        Some(words) => format!("{:.3} (p = {:.3}, shift: {})", words.auroc, words.p_value, words.shift),
        None => "-".to_owned(),
    };
    let (tokens, zlib) = (number(blind.lengths.scored_tokens), number(blind.lengths.bytes_per_zlib_byte));
    format!(
        "\nwithout a model: AUROC of the words {words}, of the number of tokens {tokens}, of bytes per zlib byte {zlib}\n"
    )
}

fn prior(test: &PriorTest) -> String {
    let PriorTest { positions, early_gap, late_gap, p_value, .. } = test;
    format!(
        "gap between the classes over {positions} positions: early {} nats, late {} (p = {p_value:.3} that early is larger)\n",
        signed(*early_gap),
        signed(*late_gap)
    )
}

fn decisions(decisions: &Decisions) -> String {
    let Decisions { method, procedure, fdr, tested, rejected, minimum_discoveries, .. } = decisions;
    let mut out = format!(
        "\nlist at a false discovery rate of {fdr} ({procedure}): {rejected} of {tested} distinct texts by {method}; the shortest \
         possible list has {minimum_discoveries}\n"
    );
    if let (Some(threshold), Some(bound)) = (decisions.threshold, decisions.fpr_upper_95) {
        let _ = writeln!(out, "scores from {threshold:.4}; false-positive rate there at most {bound:.4} (95 % bound)");
    }
    if let Some(false_discoveries) = decisions.non_members_rejected {
        let _ = writeln!(out, "labelled non-members on it: {false_discoveries}");
    }
    out
}

pub fn verdict(verdict: &Verdict) -> String {
    let texts_alone = verdict.comparability.as_ref().map_or_else(String::new, comparability);
    let state = format!("{} ({}, {})", verdict.state, verdict.reason, verdict.design);
    texts_alone + &stated(&state, &verdict.sentence, &verdict.assumptions)
}

/// The state of a verdict, its sentence and what it takes for granted.
pub fn stated(state: &str, sentence: &str, assumptions: &[String]) -> String {
    let assumes = assumptions.iter().map(|assumption| wrapped(&format!("assumes: {assumption}")));
    format!("\nverdict: {state}\n{}{}", wrapped(sentence), assumes.collect::<String>())
}

/// Describes what tells the lists apart without the model: the measures, and the n-grams that separate.
fn comparability(texts: &Comparability) -> String {
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

/// The sentence of a verdict in indented lines.
pub fn wrapped(sentence: &str) -> String {
    let (mut out, mut length) = ("  ".to_owned(), 0);
    for word in sentence.split(' ') {
        let word_length = word.chars().count() + 1;
        if length + word_length > WIDTH {
            out.push_str("\n  ");
            length = 0;
        }
        out.push_str(if length == 0 { "" } else { " " });
        out.push_str(word);
        length += word_length;
    }
    out.push('\n');
    out
}
