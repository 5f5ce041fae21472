//! Step 3: statistics, recomputed from the scores and the texts.

use super::report_file::ReportFile;
use super::step::Finding;
use crate::audits::{RecomputationError, RecomputedReport, ScoredTexts, recompute, recompute_test};
use crate::scorer::Workers;
use crate::wire::number_of;
use anyhow::Result;
use indexmap::IndexMap;
use serde::Serialize;
use serde_json::Value;
use std::iter;

/// Largest difference of a recomputed number, relative to it: the last bits of logarithms and exponentials differ between libraries,
/// and sums of thousands keep twelve digits.
const RELATIVE: f64 = 1e-9;
/// Largest difference of numbers near 0, which are differences of numbers near 1.
const ABSOLUTE: f64 = 1e-15;

/// Parts of a report that the scores do not determine, and what it takes to recompute them.
const OTHER_PARTS: [(&str, &str); 26] = [
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
    ("/commitment", REQUEST),
    ("/samples/excluded/*/pointer", REQUEST),
    ("/plan/earlier_audits", "the store of the service"),
    ("/provenance/program_version", RUN),
    ("/provenance/numerics", RUN),
    ("/provenance/device", RUN),
    ("/provenance/dtype", RUN),
    ("/provenance/commit", RUN),
    ("/provenance/calibration_digest", KNOWN),
    ("/decisions", KNOWN),
    ("/works", KNOWN),
    ("/shared_text", KNOWN),
    ("/dataset_test", KNOWN),
    ("/methods/*/calibration", KNOWN),
    ("/verdict", KNOWN),
];

const RUN: &str = "the run itself";
const REQUEST: &str = "the request";
const TOKENS: &str = "the statistics of every token";
const TEXTS: &str = "the texts: give --dataset";
/// Parts of the report of a test of two lists that take the texts.
const PARTS_OF_LISTS: [&str; 4] = ["/blind", "/comparability", "/verdict", "/warnings"];

const KNOWN: &str = "the known non-members: give --known and --known-dataset";

/// Inputs of the recomputation beside the scores.
struct Given {
    /// True if the texts are given.
    texts: bool,
    /// True if the p-values come from a calibration of its own, whose scores are not given.
    calibrated: bool,
    /// True if the samples have labels.
    labelled: bool,
    /// True if the report is of a test of two lists.
    tested: bool,
}

/// Recomputes the report and compares every number, word and list with what it says.
pub async fn findings(
    file: &ReportFile,
    texts: ScoredTexts<'_>,
    known: Option<ScoredTexts<'_>>,
    workers: &Workers,
) -> Result<Vec<Finding>> {
    let (has_texts, has_known) = (texts.samples.is_some(), texts.samples.is_some() && known.is_some());
    let recomputed = match file.is_list_test() {
        true => as_json(recompute_test(&file.report, texts, workers).await),
        false => as_json(recompute(&file.report, texts, known, workers).await),
    };
    let RecomputedReport { report: recomputed, line_faults } = match recomputed {
        Ok(recomputed) => recomputed,
        Err(error) => return Ok(vec![Finding::fails(format!("{error:#}"))]),
    };
    let labelled = |side: &str| recomputed["samples"][side].as_u64().is_some_and(|count| count > 0);
    let given = Given {
        texts: has_texts,
        calibrated: file.report["provenance"]["request"]["calibration"].is_string() && !has_known,
        labelled: ["members", "non_members"].into_iter().any(labelled),
        tested: file.is_list_test(),
    };
    let mut comparison = ReportComparison { given, equal: 0, differing: line_faults, unchecked: IndexMap::new() };
    comparison.compare("", &file.report, &recomputed);
    comparison.name_known_parts();
    let ReportComparison { equal, differing, unchecked, .. } = comparison;
    let source = if has_texts { "the scores and the texts" } else { "the scores" };
    let holding = format!("{} match those recomputed from {source}", number_of(equal, "value"));
    let unchecked = unchecked
        .into_iter()
        .map(|(source, parts)| Finding::not_checked(format!("{} (from {source})", parts.join(", "))));
    let lines = "alpha_used, windows, thresholds and other columns of the lines (from the run itself)";
    let findings = iter::once(Finding::without(&differing, holding)).chain(unchecked);
    Ok(findings.chain([Finding::not_checked(lines)]).collect())
}

fn as_json<R: Serialize>(
    recomputed: Result<RecomputedReport<R>, RecomputationError>,
) -> Result<RecomputedReport<Value>> {
    let RecomputedReport { report, line_faults } = recomputed?;
    Ok(RecomputedReport { report: serde_json::to_value(report)?, line_faults })
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
        if let Some(source) = self.source_not_given(pointer) {
            if !claimed.is_null() && claimed.as_array().is_none_or(|list| !list.is_empty()) {
                self.name(source, wildcard(pointer));
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
            // The request and the digests are what the recomputation begins with.
            _ if is_equal(claimed, recomputed) => self.equal += usize::from(!pointer.starts_with("/provenance")),
            _ => self.differing.push(format!("{pointer} is {}, recomputed {}", short(claimed), short(recomputed))),
        }
    }

    /// Notes that a part is not checked.
    fn name(&mut self, source: &'static str, part: String) {
        let parts = self.unchecked.entry(source).or_default();
        if !parts.contains(&part) {
            parts.push(part);
        }
    }

    /// Notes every part that takes the known non-members, if these are not given: one that was removed is not missed.
    fn name_known_parts(&mut self) {
        let Given { calibrated, labelled, .. } = self.given;
        let parts =
            OTHER_PARTS.into_iter().filter(|(part, source)| *source == KNOWN && !(labelled && *part == "/verdict"));
        for (part, source) in parts.filter(|_| calibrated) {
            self.name(source, part.to_owned());
        }
    }

    /// The source of the part at this pointer, if it is not given.
    fn source_not_given(&self, pointer: &str) -> Option<&'static str> {
        let Given { texts, calibrated, labelled, tested } = self.given;
        if tested && !texts && PARTS_OF_LISTS.contains(&pointer) {
            return Some(TEXTS);
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

/// True if two values say the same; numbers with a fraction may differ in their last digits.
fn is_equal(claimed: &Value, recomputed: &Value) -> bool {
    match (claimed.as_f64(), recomputed.as_f64()) {
        (Some(one), Some(other)) if claimed.is_f64() || recomputed.is_f64() => {
            let difference = (one - other).abs();
            difference <= RELATIVE * one.abs().max(other.abs()) || difference <= ABSOLUTE
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
