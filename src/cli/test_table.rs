//! The report of a test for people, made of its JSON: the verdict first, then a line a method.

use super::evidence;
use super::report_format::{hanging, part, signed, wrapped};
use super::text_table::{LABEL, TextColumn, TextTable};
use crate::wire::number_of;
use serde_json::Value;
use std::fmt::Write;

/// The verdict, one line a method, its statistic, then what was left out, the controls and the warnings.
pub fn render(report: &Value, width: Option<usize>) -> String {
    let mut out = evidence::verdict(&report["verdict"], width);
    out.push_str(&heading(report));
    out.push_str(&methods(&report["methods"], width));
    for method in elements(&report["methods"]) {
        out.push_str(&details(method, width));
    }
    out.push_str(&inference(&report["inference"], width));
    // Writing to a String cannot fail.
    out.extend(part(&report["blind"]).map(|findings| evidence::blind(&findings)));
    out.extend(part(&report["comparability"]).map(|texts| evidence::comparability(&texts)));
    if let Some(matches) = report["commitment"]["matches"].as_bool() {
        let _ = writeln!(out, "commitment: {}", if matches { "matches" } else { "does not match" });
    }
    for warning in elements(&report["warnings"]) {
        let _ = write!(out, "\n{}", hanging(&format!("warning: {}", text(warning, "detail")), width));
    }
    out
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

fn heading(report: &Value) -> String {
    let samples = &report["samples"];
    let excluded: u64 = elements(&samples["exclusions"]).filter_map(|exclusion| exclusion["samples"].as_u64()).sum();
    let total = number_of(samples["total"].as_u64().unwrap_or_default(), "text");
    let (model, kind) = (text(&report["provenance"], "model"), text(report, "kind"));
    format!("{model}: test of kind {kind}, {total}, {excluded} excluded\n\n")
}

/// One line a method.
fn methods(methods: &Value, width: Option<usize>) -> String {
    let numbers = ["tested", "p", "adjusted p"].map(TextColumn::numbers);
    let mut table = TextTable::new([TextColumn::words("method").cut_to(LABEL)].into_iter().chain(numbers));
    for method in elements(methods) {
        let p_value = |name: &str| method[name].as_f64().map_or("-".to_owned(), |value| format!("{value:.2e}"));
        let tested = method["tested"].as_u64().unwrap_or_default().to_string();
        table.add([text(method, "label").to_owned(), tested, p_value("p_value"), p_value("p_value_adjusted")]);
    }
    table.render(width)
}

/// The statistic of a method, what it leaves out, and what it finds beyond the control.
fn details(method: &Value, width: Option<usize>) -> String {
    let mut parts = statistics(method);
    parts.extend(method["error"].as_str().map(str::to_owned));
    parts.extend(method["left_out"].as_u64().filter(|left_out| *left_out > 0).map(|count| format!("{count} left out")));
    let control = &method["control"];
    parts.extend(control["difference"].as_f64().map(|difference| {
        let interval = match (control["interval"][0].as_f64(), control["interval"][1].as_f64()) {
            (Some(low), Some(high)) => format!(" ({low:+.3} to {high:+.3})"),
            _ => String::new(),
        };
        format!("beside the control {}: {}{interval}", text(control, "model"), signed(difference))
    }));
    let beyond = &method["beyond_control"];
    parts.extend(beyond["model"].as_str().map(|model| {
        let p_value = beyond["p_value"].as_f64().map_or("no p-value".to_owned(), |value| format!("p = {value:.2e}"));
        let alone = beyond["control_p_value"].as_f64();
        let alone = alone.map_or(String::new(), |value| format!(", under it alone p = {value:.2e}"));
        format!("beyond the control {model}: {p_value}{alone}")
    }));
    if parts.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", text(method, "label"), wrapped(&parts.join("; "), width))
}

/// The combination of all methods: its result over the splits, and the weights.
fn inference(inference: &Value, width: Option<usize>) -> String {
    let Some(splits) = inference["splits"].as_array() else { return String::new() };
    let number = |value: &Value| value.as_f64().map_or("-".to_owned(), |value| format!("{value:.3}"));
    let p_value = |value: &Value| value.as_f64().map_or("-".to_owned(), |value| format!("{value:.2e}"));
    let (effect, tested) = (&inference["effect"], &inference["tested"]);
    let mut parts = vec![format!(
        "median AUROC {} over {} that test {} against {} clusters, twice the median p = {}",
        number(&effect["auroc"]),
        number_of(splits.len(), "split"),
        tested[0],
        tested[1],
        p_value(&inference["p_value"])
    )];
    let control = &inference["control"];
    parts.extend(control["model"].as_str().map(|model| {
        let difference = control["difference"].as_f64().map(signed).unwrap_or_default();
        format!("beside the control {model}: {difference}, p = {}", p_value(&control["p_value"]))
    }));
    parts.extend(inference["error"].as_str().map(str::to_owned));
    let weights = elements(&inference["weights"]);
    let weights = weights.map(|weight| {
        format!("{} {}", text(weight, "label"), weight["weight"].as_f64().map(signed).unwrap_or_default())
    });
    let weights = format!("weights: {}", weights.collect::<Vec<_>>().join(", "));
    format!("\ncombination of all methods\n{}{}", wrapped(&parts.join("; "), width), wrapped(&weights, width))
}

/// The statistics of a method in words.
fn statistics(method: &Value) -> Vec<String> {
    let number = |test: &str, name: &str| method[test][name].as_f64();
    let count = |value: &Value| value.as_u64().unwrap_or_default();
    let mut parts = Vec::new();
    parts.extend(number("mann_whitney", "auroc").map(|auroc| {
        let suspects = number_of(count(&method["suspects"]), "suspect");
        format!("AUROC {auroc:.3}, {suspects} against {}", count(&method["held_out"]))
    }));
    parts.extend(
        number("welch", "statistic")
            .zip(number("welch", "p_value"))
            .map(|(statistic, p_value)| format!("Welch's t {statistic:.2} (p = {p_value:.2e})")),
    );
    parts.extend(number("permutation", "mean").map(|mean| format!("mean difference {mean:+.4}")));
    let ranks = &method["canary_rank"];
    parts.extend(ranks["expected_rank_sum"].as_f64().map(|expected| {
        let suffices = ranks["would_suffice"].as_u64();
        let suffices = suffices.map_or(String::new(), |count| format!("; about {count} such canaries would suffice"));
        let (sum, first) = (&ranks["rank_sum"], count(&ranks["first"]));
        format!("sum of ranks less 1: {sum} where chance gives {expected:.1}; {first} first{suffices}")
    }));
    parts.extend(number("order", "mean_difference").map(|mean| format!("mean difference {mean:+.4}")));
    parts
}
