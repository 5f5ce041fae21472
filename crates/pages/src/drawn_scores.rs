//! Scores that the page of an audit draws, gathered text by text.

use crate::{MethodScores, drawn_methods};
use serde_json::Value;

/// Maximum number of works whose passages are drawn.
const MOST_WORKS: usize = 20;

/// Scores that the page of an audit draws.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DrawnScores {
    /// By method, the primary one first.
    pub methods: Vec<MethodScores>,
    /// By work among the known works, as many as are drawn.
    pub works: Vec<WorkScores>,
    /// Label of the method by which works are listed.
    pub(crate) deciding: String,
}

/// The scores of a work's passages in their order, by the method that decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkScores {
    /// Id of the document.
    pub document: String,
    pub scores: Vec<f64>,
}

impl DrawnScores {
    /// No scores yet of the methods and works that the page of this report draws.
    #[must_use]
    pub fn new(report: &Value) -> Self {
        let work = |work: &Value| WorkScores { document: document_name(&work["document"]), scores: Vec::new() };
        let works = report["works"].as_array().into_iter().flatten();
        Self {
            methods: drawn_methods(report).into_iter().map(MethodScores::new).collect(),
            works: works.take(MOST_WORKS).map(work).collect(),
            deciding: report["decisions"]["method"].as_str().unwrap_or_default().to_owned(),
        }
    }

    /// Adds a text: its label, the name of its document, and its scores by label of the method.
    pub fn add(&mut self, member: Option<bool>, document: Option<&str>, score: impl Fn(&str) -> Option<f64>) {
        for method in &mut self.methods {
            if let Some(score) = score(&method.label) {
                method.add(member, score);
            }
        }
        let work = document.and_then(|document| self.works.iter_mut().find(|work| work.document == document));
        if let Some(work) = work {
            work.scores.extend(score(&self.deciding));
        }
    }

    /// Returns the number of scores.
    #[must_use]
    pub fn count(&self) -> usize {
        let works = self.works.iter().map(|work| work.scores.len());
        self.methods.iter().map(MethodScores::count).chain(works).sum()
    }
}

/// The name of a document: a text, or an integer in digits.
#[must_use]
pub fn document_name(document: &Value) -> String {
    document.as_str().map_or_else(|| document.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn scores_go_to_the_methods_and_works_that_are_drawn() {
        let report = json!({
            "methods": [{ "label": "loss" }], "works": [{ "document": "a" }, { "document": 7 }], "decisions": { "method": "loss" },
        });
        let mut drawn = DrawnScores::new(&report);
        for (document, score) in [(Some("a"), 1.0), (Some("7"), 2.0), (Some("b"), 3.0), (None, 4.0), (Some("a"), 5.0)] {
            drawn.add(None, document, |label| (label == "loss").then_some(score));
        }
        assert_eq!(drawn.methods[0].unlabelled, [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(drawn.works.iter().map(|work| work.scores.clone()).collect::<Vec<_>>(), [vec![1.0, 5.0], vec![2.0]]);
        assert_eq!(drawn.count(), 8);
    }
}
