//! Request for a memorization job, as data.

use super::continuation::ContinuationSettings;
use super::passes::WindowShape;
use crate::datasets::SampleId;
use crate::datasets::SampleTotals;
use serde::{Deserialize, Serialize};
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
