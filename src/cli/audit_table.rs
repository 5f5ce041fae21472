//! An audit's report for people, made of its JSON: the verdict first, then a line a method.

use super::evidence;
use super::report_format::{hanging, number, part, percent, signed};
use super::text_table::{LABEL, TextColumn, TextTable};
use super::works;
use crate::audits::AuditResults;
use crate::table::ResultRow;
use crate::wire::number_of;
use indexmap::IndexMap;
use serde_json::Value;
use std::fmt::Write;

/// The line for texts that are compared with nothing.
const NO_VERDICT: &str = "no verdict: there is nothing to compare the texts with; name texts like them that the model cannot have seen \
                          (--calibration), or give labels";

/// The scores of each method, by its label.
pub type ScoresByMethod = IndexMap<String, Vec<f64>>;

/// The scores of an audit's results.
pub fn scores_of_results(results: &AuditResults) -> ScoresByMethod {
    let scores = |place: usize| results.rows.iter().filter_map(|row| row.scores[place]).collect();
    results.listed().map(|(place, column)| (column.method.label.to_string(), scores(place))).collect()
}

/// The same of rows that have `scores`.
pub fn scores_of_rows(rows: &[ResultRow]) -> ScoresByMethod {
    let mut all = ScoresByMethod::new();
    let scores = rows.iter().filter_map(|row| row.get("scores")?.as_object()).flatten();
    for (label, score) in scores.filter_map(|(label, score)| Some((label, score.as_f64()?))) {
        all.entry(label.clone()).or_default().push(score);
    }
    all
}

/// The verdict, a line a method, then the same for each group and for the mean over groups, then what the verdict rests on, and the
/// warnings. Without labels the lines say how the scores are spread.
pub fn render(report: &Value, scores: &ScoresByMethod, width: Option<usize>) -> String {
    // The question that a single work asks is answered first.
    let mut out = works::render(report, width);
    out.push_str(&evidence::verdict(&report["verdict"], width));
    let samples = &report["samples"];
    if report["verdict"].is_null() && !is_labelled(samples) {
        out.push_str(&hanging(NO_VERDICT, width));
        out.push('\n');
    }
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{}: {}, {}\n",
        part::<String>(&report["provenance"]["model"]).unwrap_or_default(),
        counts(samples),
        exclusions(samples)
    );
    if is_labelled(samples) {
        out.push_str(&separations(&report["methods"], width));
    } else {
        out.push_str(&spreads(scores, width));
    }
    for group in elements(&report["groups"]) {
        let _ = writeln!(out, "\n{}: {}\n", group["group"].as_str().unwrap_or_default(), counts(group));
        out.push_str(&separations(&group["methods"], width));
    }
    out.push_str(&averages(&report["methods"], width));
    out.push_str(&seeds(&report["seeds"]));
    out.push_str(&evidence::render(report, width));
    out.push_str(&plan(&report["plan"]));
    out.push_str(&warnings(report, width));
    out
}

fn elements(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn count(samples: &Value, name: &str) -> u64 {
    samples[name].as_u64().unwrap_or_default()
}

fn is_labelled(samples: &Value) -> bool {
    count(samples, "members") + count(samples, "non_members") > 0
}

/// The numbers of samples, as a whole or of a group.
fn counts(samples: &Value) -> String {
    let total = number_of(count(samples, "total"), "sample");
    if !is_labelled(samples) {
        return format!("{total} without labels");
    }
    let members = number_of(count(samples, "members"), "member");
    format!("{total}, {members}, {}", number_of(count(samples, "non_members"), "non-member"))
}

/// Describes the number of missing scores, by reason.
fn exclusions(samples: &Value) -> String {
    let mut reasons = IndexMap::<&str, u64>::new();
    for exclusion in elements(&samples["exclusions"]) {
        *reasons.entry(exclusion["code"].as_str().unwrap_or_default()).or_default() += count(exclusion, "samples");
    }
    let total = number_of(reasons.values().sum::<u64>(), "exclusion");
    let reasons: Vec<String> = reasons.iter().map(|(code, count)| format!("{count} {code}")).collect();
    if reasons.is_empty() { total } else { format!("{total} ({})", reasons.join(", ")) }
}

/// The columns of the true-positive rates of some methods, by the false-positive rates of the first that has them.
fn rate_columns<'a>(mut rates: impl Iterator<Item = &'a Value>) -> Vec<TextColumn> {
    let targets = rates.find_map(|rates| rates.as_array().filter(|rates| !rates.is_empty()));
    let target = |rate: &Value| rate["fpr"].as_f64().unwrap_or_default();
    let columns =
        targets.into_iter().flatten().map(|rate| TextColumn::numbers(format!("TPR@{}", percent(target(rate)))));
    columns.collect()
}

/// One number for each of the columns.
fn rate_cells(rates: &Value, columns: usize) -> impl Iterator<Item = String> {
    (0..columns).map(move |place| number(rates[place]["tpr"].as_f64()))
}

/// One line a method: how well it separates the classes, or how many scores it has where there are none.
fn separations(methods: &Value, width: Option<usize>) -> String {
    let label = |method: &Value| method["label"].as_str().unwrap_or_default().to_owned();
    if elements(methods).all(|method| method["tpr_at_fpr"].is_null()) {
        let mut table = TextTable::new([TextColumn::words("method").cut_to(LABEL), TextColumn::numbers("scored")]);
        elements(methods).for_each(|method| table.add([label(method), count(method, "scored").to_string()]));
        return table.render(width);
    }
    let rates = rate_columns(elements(methods).map(|method| &method["tpr_at_fpr"]));
    let rate_count = rates.len();
    let first = [TextColumn::words("method").cut_to(LABEL), TextColumn::numbers("AUROC"), TextColumn::numbers("s.e.")];
    let has_weights = elements(methods).any(|method| !method["versus_baseline"].is_null());
    let versus = has_weights.then(|| TextColumn::words("vs. baseline"));
    let last = [TextColumn::numbers("FPR@95%")].into_iter().chain(versus);
    let mut table = TextTable::new(first.into_iter().chain(rates).chain(last));
    for method in elements(methods) {
        let auroc = [number(method["auroc"].as_f64()), number(method["auroc_standard_error"].as_f64())];
        let cells = [label(method)].into_iter().chain(auroc).chain(rate_cells(&method["tpr_at_fpr"], rate_count));
        let last = [number(method["fpr_at_95_tpr"].as_f64()), versus_baseline(&method["versus_baseline"])];
        table.add(cells.chain(last));
    }
    table.render(width)
}

/// Difference that weights make to the same method without them; empty for a method without weights.
fn versus_baseline(versus: &Value) -> String {
    let (Some(delta), Some(baseline)) = (versus["delta"].as_f64(), versus["baseline"].as_str()) else {
        return String::new();
    };
    let p = versus["p_value"].as_f64().map_or(String::new(), |p| format!(" (p = {p:.3})"));
    format!("{}{p} on {baseline}", signed(delta))
}

/// The number of scores of each method, and quantiles of them: what is known without labels.
fn spreads(scores: &ScoresByMethod, width: Option<usize>) -> String {
    let names = ["scored", "lowest", "10 %", "median", "90 %", "highest"].map(TextColumn::numbers);
    let mut table = TextTable::new([TextColumn::words("method").cut_to(LABEL)].into_iter().chain(names));
    for (label, scores) in scores {
        let mut scores = scores.clone();
        scores.sort_by(f64::total_cmp);
        // The score below which at most this part of the others lies.
        let quantile = |part: f64| scores.get(((scores.len().saturating_sub(1)) as f64 * part).round() as usize);
        let quantiles = [0.0, 0.1, 0.5, 0.9, 1.0].map(|part| number(quantile(part).copied()));
        table.add([label.clone(), scores.len().to_string()].into_iter().chain(quantiles));
    }
    table.render(width)
}

/// One line a method: how many groups are in the mean, then the means; nothing where they were not asked for.
fn averages(methods: &Value, width: Option<usize>) -> String {
    let means: Vec<(&str, &Value)> = elements(methods)
        .filter_map(|method| Some((method["label"].as_str()?, &method["average"]["group"])))
        .filter(|(_, mean)| !mean.is_null())
        .collect();
    if means.is_empty() {
        return String::new();
    }
    let rates = rate_columns(means.iter().map(|(_, mean)| &mean["tpr_at_fpr"]));
    let rate_count = rates.len();
    let first =
        [TextColumn::words("method").cut_to(LABEL), TextColumn::numbers("groups"), TextColumn::numbers("AUROC")];
    let mut table = TextTable::new(first.into_iter().chain(rates));
    for (label, mean) in means {
        let first = [label.to_owned(), count(mean, "groups").to_string(), number(mean["auroc"].as_f64())];
        table.add(first.into_iter().chain(rate_cells(&mean["tpr_at_fpr"], rate_count)));
    }
    format!("\nunweighted mean over groups\n\n{}", table.render(width))
}

/// One line for methods that differ by their seeds alone.
fn seeds(seeds: &Value) -> String {
    let spread = |spread: &Value| {
        let number = |name: &str| spread[name].as_f64();
        Some((number("mean")?, number("standard_deviation")?))
    };
    let line = |summary: &Value| {
        let (mean, deviation) = spread(&summary["auroc"])?;
        let more = number_of(summary["seeds"].as_array()?.len().saturating_sub(1), "more seed");
        let gain = spread(&summary["delta"])
            .map(|(mean, deviation)| format!(", {} +- {deviation:.3} vs. before tuning", signed(mean)));
        let label = summary["labels"][0].as_str()?;
        Some(format!("\n{label} and {more}: AUROC {mean:.3} +- {deviation:.3}{}\n", gain.unwrap_or_default()))
    };
    elements(seeds).filter_map(line).collect()
}

fn plan(plan: &Value) -> String {
    match (plan["id"].as_str(), plan["created"].as_str()) {
        (Some(id), Some(created)) => format!("\nplanned: {id} of {created}\n"),
        _ => "\nunplanned: methods, primary and control may have been chosen by their results\n".to_owned(),
    }
}

/// The warnings of the whole report and of its groups.
fn warnings(report: &Value, width: Option<usize>) -> String {
    let detail = |warning: &Value| warning["detail"].as_str().unwrap_or_default().to_owned();
    let whole = elements(&report["warnings"]).map(detail);
    let of_groups = elements(&report["groups"]).flat_map(|group| {
        let name = group["group"].as_str().unwrap_or_default();
        elements(&group["warnings"]).map(move |warning| format!("{name}: {}", detail(warning)))
    });
    whole.chain(of_groups).map(|warning| format!("\n{}", hanging(&format!("warning: {warning}"), width))).collect()
}
