//! Private part of canaries, which their owner keeps until a model is asked about them.

use crate::audits::{Canary, TestKind, TestTexts, commitment};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The private part of canaries, as a file of JSON: their twins, which of the texts was drawn, and how the test is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivatePart {
    /// The method that the verdict is about, as in a request.
    pub method: Value,
    /// Random digits, so that the commitment cannot be guessed from the published texts.
    pub nonce: String,
    /// Each with the text that was drawn, and its twins.
    pub canaries: Vec<Canary>,
}

impl PrivatePart {
    /// The SHA-256 that commits to it; `label` is the one that its method has by default.
    #[must_use]
    pub fn commitment(&self, label: &str) -> String {
        let texts = TestTexts::Rank(self.canaries.clone());
        commitment(TestKind::Rank, label, &self.nonce, &texts.committed())
    }
}
