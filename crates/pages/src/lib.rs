//! Reports as pages of HTML: one file each, with its style and its figures, no script and nothing from elsewhere.
//!
//! A page is a pure function of the report's JSON and of scores. Each number on it is a `data` element, whose `value` is the number of
//! the JSON and whose `data-at` is the JSON pointer to it, so that a program can check that the page says what the report says.

#![deny(unsafe_code)]

mod audit;
mod chart;
mod distributions;
mod drawn_scores;
mod evidence;
mod figures;
mod generic;
mod memorization;
mod methods;
mod numbers;
mod page;
mod profile;
mod roc;
mod strips;
mod sweeps;

pub use drawn_scores::{DrawnScores, WorkScores, document_name};
pub use page::{Page, Provenance, STYLE};
pub use strips::{StripToken, TextStrip};

/// The scores of one method by the labels of the texts, in any order. Texts without a score are left out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MethodScores {
    /// Label of the method in the report.
    pub label: String,
    pub members: Vec<f64>,
    pub non_members: Vec<f64>,
    pub unlabelled: Vec<f64>,
}

impl MethodScores {
    /// No scores yet of the method of this label.
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// Returns the number of scores.
    #[must_use]
    pub fn count(&self) -> usize {
        self.members.len() + self.non_members.len() + self.unlabelled.len()
    }

    /// Adds the score of a text; `member` is its label, if it has one.
    pub fn add(&mut self, member: Option<bool>, score: f64) {
        match member {
            Some(true) => self.members.push(score),
            Some(false) => self.non_members.push(score),
            None => self.unlabelled.push(score),
        }
    }
}

/// Maximum memory that a score takes while a page is made, in bytes: sorted with its label, as a tie and as a point of the curve.
pub const BYTES_PER_SCORE: u64 = 128;

/// Maximum number of methods whose curves are drawn.
const MOST_DRAWN: usize = 4;

/// Labels of the methods of an audit that are drawn, at most four: the primary one, its baseline without weights, and the first of the
/// others. None are chosen by their results.
#[must_use]
fn drawn_methods(report: &serde_json::Value) -> Vec<String> {
    let methods = report["methods"].as_array().map_or(&[][..], Vec::as_slice);
    let labels = || methods.iter().filter_map(|method| method["label"].as_str());
    let primary = [&report["verdict"]["primary"], &report["provenance"]["request"]["primary"]]
        .into_iter()
        .find_map(|label| label.as_str());
    let primary = primary.or_else(|| labels().next());
    let baseline = methods.iter().find(|method| method["label"].as_str() == primary);
    let baseline = baseline.and_then(|method| method["versus_baseline"]["baseline"].as_str());
    let mut drawn: Vec<String> = Vec::new();
    for label in primary.into_iter().chain(baseline).chain(labels()) {
        if labels().any(|listed| listed == label) && !drawn.iter().any(|drawn| drawn == label) {
            drawn.push(label.to_owned());
        }
    }
    drawn.truncate(MOST_DRAWN);
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_primary_method_is_drawn_first_and_its_baseline_beside_it() {
        let method = |label: &str, baseline: Option<&str>| json!({ "label": label, "versus_baseline": { "baseline": baseline } });
        let methods =
            [method("a", None), method("b", None), method("c", None), method("c+linear", Some("c")), method("d", None)];
        let report = json!({ "methods": methods, "verdict": { "primary": "c+linear" } });
        assert_eq!(drawn_methods(&report), ["c+linear", "c", "a", "b"]);
        let unlabelled = json!({ "methods": [method("a", None)] });
        assert_eq!(drawn_methods(&unlabelled), ["a"]);
        assert!(drawn_methods(&json!({})).is_empty());
    }
}
