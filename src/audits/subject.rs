//! Summary of an audit in lists.

use super::request::AuditRequest;
use crate::datasets::SampleTotals;
use crate::jobs::JobSubject;
use serde::{Deserialize, Serialize};

/// Summary of an audit in lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditSubject {
    /// Name given by the client; the report does not depend on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Id of the model.
    pub model: String,
    /// The labels of the methods.
    pub methods: Vec<String>,
    /// Id of the dataset; `None` for samples that came with the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// Number of samples.
    pub total: usize,
    /// Numbers of members and of non-members; both 0 without labels.
    pub members: usize,
    pub non_members: usize,
}

impl AuditSubject {
    pub fn new(request: &AuditRequest, name: Option<String>, dataset: Option<String>, totals: &SampleTotals) -> Self {
        Self {
            name,
            model: request.model.clone(),
            methods: request.methods.iter().map(|method| method.label.to_string()).collect(),
            dataset,
            total: totals.samples,
            members: totals.members,
            non_members: totals.non_members,
        }
    }
}

impl JobSubject for AuditSubject {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn dataset(&self) -> Option<&str> {
        self.dataset.as_deref()
    }

    fn samples(&self) -> SampleTotals {
        SampleTotals {
            samples: self.total,
            members: self.members,
            non_members: self.non_members,
            groups: 1,
            grouped: self.total,
            with_neighbors: self.total,
            ..SampleTotals::default()
        }
    }

    fn total(&self) -> usize {
        self.total
    }
}
