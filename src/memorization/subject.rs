//! Summary of a memorization job in lists.

use crate::datasets::SampleTotals;
use crate::jobs::JobSubject;
use serde::{Deserialize, Serialize};

/// Subject of a memorization job.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemorizationSubject {
    /// Id of the model.
    pub model: String,
    /// Id of the dataset; none for texts that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of texts.
    pub texts: usize,
    /// Number of texts of the control.
    pub control: usize,
}

impl JobSubject for MemorizationSubject {
    fn name(&self) -> Option<&str> {
        None
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn dataset(&self) -> Option<&str> {
        self.dataset.as_deref()
    }

    fn samples(&self) -> SampleTotals {
        SampleTotals { samples: self.texts, ..SampleTotals::default() }
    }

    fn total(&self) -> usize {
        self.texts + self.control
    }
}
