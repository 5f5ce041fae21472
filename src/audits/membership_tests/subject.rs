//! Summary of a test in lists.

use super::kind::TestKind;
use crate::audits::subject::AuditSubject;
use crate::datasets::SampleTotals;
use crate::jobs::JobSubject;
use serde::{Deserialize, Serialize};

/// Summary of a test in lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestSubject {
    pub kind: TestKind,
    /// The samples that are scored, and how; of a test of kind `dataset` the suspects count as members.
    pub scored: AuditSubject,
}

impl JobSubject for TestSubject {
    fn name(&self) -> Option<&str> {
        self.scored.name()
    }

    fn model(&self) -> &str {
        self.scored.model()
    }

    fn dataset(&self) -> Option<&str> {
        self.scored.dataset()
    }

    fn samples(&self) -> SampleTotals {
        self.scored.samples()
    }

    fn total(&self) -> usize {
        self.scored.total()
    }
}
