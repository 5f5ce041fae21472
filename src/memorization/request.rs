//! Request for a memorization job, as data.

use super::continuation::ContinuationSettings;
use crate::datasets::SampleId;
use crate::datasets::SampleTotals;
use mia::methods::Fault;
use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// Maximum number of texts of a job: each has its place in the report.
pub const MOST_TEXTS: usize = 1_000_000;
/// Maximum number of windows of a job: each is a part of the report, of some hundred bytes.
pub const MOST_WINDOWS: usize = 1_000_000;

/// A look at texts: the same request on the same texts and model gives the same report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemorizationRequest {
    /// Id of the model.
    pub model: String,
    pub windows: WindowShape,
    /// True if the report has the text of each longest run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run_text: bool,
    /// Greedy continuation of the texts; `None` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<ContinuationSettings>,
    /// Texts that the model cannot have seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control: Vec<WorkText>,
}

/// The windows of a text, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowShape {
    /// Tokens of a window that the model is given.
    pub prefix: usize,
    /// Tokens of the continuation.
    pub suffix: usize,
    /// Tokens from the start of a window to that of the next.
    pub stride: usize,
    pub passes: WindowPasses,
}

/// Forward passes of overlapping windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WindowPasses {
    /// Windows that begin within the prefix of another share its pass, and are given fewer than twice `prefix` tokens.
    #[default]
    Shared,
    /// Each window is a pass of its own, and is given exactly `prefix` tokens.
    Separate,
}

/// A text with its id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NamedWork)]
pub struct WorkText {
    /// Comes back with the result; need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<SampleId>,
    pub text: String,
}

impl Default for WindowShape {
    fn default() -> Self {
        Self { prefix: 50, suffix: 50, stride: 10, passes: WindowPasses::Shared }
    }
}

impl WindowShape {
    /// Returns the faults of its numbers, with pointers to them.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let numbers = [("/prefix", self.prefix), ("/suffix", self.suffix), ("/stride", self.stride)];
        let zeros = numbers.into_iter().filter(|(_, number)| *number == 0);
        zeros.map(|(pointer, _)| Fault::new(pointer.to_owned(), "0 tokens, expected at least 1".to_owned())).collect()
    }
}

impl MemorizationRequest {
    /// Describes what is wrong with the texts as a whole, without those of the control.
    #[must_use]
    pub fn texts_fault(&self, totals: &SampleTotals) -> Option<String> {
        let all = totals.samples.saturating_add(self.control.len());
        if let Some(fault) = totals.in_part_fault("a memorization job") {
            Some(fault)
        } else if totals.samples == 0 {
            Some("there are no texts; a memorization job takes at least one".to_owned())
        } else if all > MOST_TEXTS {
            Some(format!("there are {all} texts, those of the control included; the limit of a job is {MOST_TEXTS}"))
        } else {
            self.continuation.and_then(|settings| settings.texts_fault(all))
        }
    }
}

impl WindowShape {
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.prefix.saturating_add(self.suffix)
    }

    /// Returns the number of windows that fit into `tokens` tokens: as many as end within them.
    #[must_use]
    pub fn count(&self, tokens: usize) -> usize {
        tokens.checked_sub(self.tokens()).map_or(0, |room| room / self.stride.max(1) + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_tokens_and_moves() {
        let shape = |json: &str| serde_json::from_str::<WindowShape>(json).unwrap();
        assert_eq!(shape("{}"), WindowShape::default());
        assert!(shape("{}").faults().is_empty());
        let faults = shape(r#"{"prefix": 0, "suffix": 0, "stride": 0}"#).faults();
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/prefix", "/suffix", "/stride"]);
        assert!(serde_json::from_str::<WindowShape>(r#"{"step": 1}"#).is_err());
        assert_eq!(shape(r#"{"passes": "separate"}"#).passes, WindowPasses::Separate);
    }

    #[test]
    fn a_window_of_the_default_shape_begins_every_ten_tokens() {
        assert_eq!([99, 100, 109, 110, 1_000].map(|tokens| WindowShape::default().count(tokens)), [0, 1, 1, 2, 91]);
        assert_eq!(WindowShape { prefix: usize::MAX, ..WindowShape::default() }.count(100), 0);
    }
}
