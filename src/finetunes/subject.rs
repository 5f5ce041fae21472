//! Summary of a fine-tune in lists.

use crate::datasets::SampleTotals;
use crate::jobs::JobSubject;
use serde::{Deserialize, Serialize};

/// Subject of a fine-tune.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinetuneSubject {
    /// Id of the model.
    pub model: String,
    /// The name of the adapter.
    pub name: String,
    /// Id of the dataset; none for samples that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of texts.
    pub texts: usize,
    /// Number of steps.
    pub steps: usize,
}

impl JobSubject for FinetuneSubject {
    fn name(&self) -> Option<&str> {
        Some(&self.name)
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
        self.steps
    }
}
