//! Step 3: statistics, recomputed from the scores and the texts.

use super::report_file::ReportFile;
use super::step::Finding;
use crate::audits::{RecomputedReport, ScoredTexts, recompute};
use crate::scorer::Workers;
use crate::wire::number_of;
use anyhow::Result;
use indexmap::IndexMap;
use serde_json::Value;
use std::iter;

/// Largest difference of a recomputed number, relative to it if it is above 1: the last bits of logarithms and exponentials differ
/// between libraries, and sums of thousands keep twelve digits.
const TOLERANCE: f64 = 1e-9;

/// Parts of a report that the scores do not determine, and what it takes to recompute them.
const OTHER_PARTS: [(&str, &str); 17] = [
    ("/position_profile", TOKENS),
    ("/positions_left_out", TOKENS),
    ("/prior_test", TOKENS),
    ("/selected_tokens", TOKENS),
    ("/groups/*/position_profile", TOKENS),
    ("/groups/*/positions_left_out", TOKENS),
    ("/blind/words", TEXTS),
    ("/blind/lengths/bytes_per_zlib_byte", TEXTS),
    ("/verdict/comparability/measures", TEXTS),
    ("/splits", "the tuning itself"),
    ("/usage", "the caches of the run"),
    ("/decisions", KNOWN),
    ("/works", KNOWN),
    ("/shared_text", KNOWN),
    ("/dataset_test", KNOWN),
    ("/methods/*/calibration", KNOWN),
    ("/verdict", KNOWN),
];

const TOKENS: &str = "the statistics of every token";
const TEXTS: &str = "the texts: give --dataset";
const KNOWN: &str = "the known non-members: give --known and --known-dataset";

/// Parts that the other steps check.
const OTHER_STEPS: [&str; 2] = ["/provenance", "/plan"];

/// Inputs of the recomputation beside the scores.
struct Given {
    /// True if the texts are given.
    texts: bool,
    /// True if the p-values come from a calibration of its own, whose scores are not given.
    calibrated: bool,
    /// True if the samples have labels.
    labelled: bool,
}

/// Recomputes the report and compares every number, word and list with what it says.
pub async fn findings(
    file: &ReportFile,
    texts: ScoredTexts<'_>,
    known: Option<ScoredTexts<'_>>,
    workers: &Workers,
) -> Result<Vec<Finding>> {
    let (has_texts, has_known) = (texts.samples.is_some(), texts.samples.is_some() && known.is_some());
    let RecomputedReport { report, line_faults } = match recompute(&file.report, texts, known, workers).await {
        Ok(recomputed) => recomputed,
        Err(error) => return Ok(vec![Finding::fails(error.to_string())]),
    };
    let recomputed = serde_json::to_value(&report)?;
    let given = Given {
        texts: has_texts,
        calibrated: file.report["provenance"]["request"]["calibration"].is_string() && !has_known,
        labelled: file.report["samples"]["members"] != 0 || file.report["samples"]["non_members"] != 0,
    };
    let mut comparison = ReportComparison { given, equal: 0, differing: line_faults, unchecked: IndexMap::new() };
    comparison.compare("", &without_repetition(&file.report), &without_repetition(&recomputed));
    let ReportComparison { equal, differing, unchecked, .. } = comparison;
    let source = if has_texts { "the scores and the texts" } else { "the scores" };
    let holding = format!("{} recomputed from {source} say the same", number_of(equal, "value"));
    let unchecked = unchecked
        .into_iter()
        .map(|(source, parts)| Finding::not_checked(format!("{} (from {source})", parts.join(", "))));
    Ok(iter::once(Finding::without(&differing, holding)).chain(unchecked).collect())
}

/// The report without the warning about passes that ran twice, which says something about the run.
fn without_repetition(report: &Value) -> Value {
    let mut report = report.clone();
    if let Some(warnings) = report["warnings"].as_array_mut() {
        warnings.retain(|warning| warning["code"] != "repeated_passes");
    }
    report
}

struct ReportComparison {
    given: Given,
    /// Number of values that are equal.
    equal: usize,
    /// Differences in words.
    differing: Vec<String>,
    /// Parts that are not checked, by what it takes to recompute them.
    unchecked: IndexMap<&'static str, Vec<String>>,
}

impl ReportComparison {
    /// Compares two values at a pointer; null for what is not there.
    fn compare(&mut self, pointer: &str, claimed: &Value, recomputed: &Value) {
        if OTHER_STEPS.contains(&pointer) {
            return;
        }
        if let Some(source) = self.source_not_given(pointer, claimed) {
            if !claimed.is_null() && claimed.as_array().is_none_or(|list| !list.is_empty()) {
                let parts = self.unchecked.entry(source).or_default();
                let part = wildcard(pointer);
                if !parts.contains(&part) {
                    parts.push(part);
                }
            }
            return;
        }
        match (claimed, recomputed) {
            (Value::Object(one), Value::Object(other)) => {
                let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
                for name in names {
                    let below = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    self.compare(&below, &claimed[name], &recomputed[name]);
                }
            }
            (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
                for (place, (one, other)) in one.iter().zip(other).enumerate() {
                    self.compare(&format!("{pointer}/{place}"), one, other);
                }
            }
            _ if is_equal(claimed, recomputed) => self.equal += 1,
            _ => self.differing.push(format!("{pointer} is {}, recomputed {}", short(claimed), short(recomputed))),
        }
    }

    /// The source of the part at this pointer, if it is not given.
    fn source_not_given(&self, pointer: &str, claimed: &Value) -> Option<&'static str> {
        let Given { texts, calibrated, labelled } = self.given;
        let code = claimed["code"].as_str().unwrap_or_default();
        if pointer.starts_with("/warnings/") && calibrated && code.starts_with("calibration_") {
            return Some(KNOWN);
        }
        if pointer == "/warnings" && calibrated {
            // Warnings about the calibration come between others, and only its scores say which.
            return Some(KNOWN);
        }
        let (_, source) = OTHER_PARTS.into_iter().find(|(part, _)| *part == wildcard(pointer))?;
        let is_given = match source {
            TEXTS => texts,
            KNOWN if pointer == "/verdict" => labelled || !calibrated,
            KNOWN => !calibrated,
            _ => false,
        };
        (!is_given).then_some(source)
    }
}

/// The pointer with a star for each place in a list.
fn wildcard(pointer: &str) -> String {
    let part = |part: &str| if part.parse::<usize>().is_ok() { "*".to_owned() } else { part.to_owned() };
    pointer.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// True if two values say the same; numbers may differ in their last digits.
fn is_equal(claimed: &Value, recomputed: &Value) -> bool {
    match (claimed.as_f64(), recomputed.as_f64()) {
        (Some(claimed), Some(recomputed)) => {
            (claimed - recomputed).abs() <= TOLERANCE * claimed.abs().max(recomputed.abs()).max(1.0)
        }
        _ => claimed == recomputed,
    }
}

/// The value in a few characters.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
