//! Tests that need no threshold: whether texts score higher than comparable ones that the model cannot have seen.
//!
//! There are five kinds ([`TestKind`]). All are samples that are scored as those of an audit are; a [`TestLayout`] says which
//! sample is what, and the report is a pure function of the request and the scores. Clients find them at `/v1/tests`.

mod commitment;
mod document;
mod inference;
mod judge;
mod layout;
mod measure;
mod options;
mod passages;
mod report;
mod texts;

pub use commitment::{Commitment, commitment, commitment_fault, committed_method};
pub use document::{BeyondControl, TestExclusion, TestMethod, TestReport, TestSamples, TestVerdict, UnitVerdict};
pub use inference::{Inference, MethodWeight};
pub use layout::{TestKind, TestLayout};
pub use measure::TestStatistics;
pub use options::test_method_faults;
pub use passages::{CutList, cut_list};
pub use report::{TestRequest, run_test, test_report};
pub use texts::{Canary, MAX_SHUFFLES, NamedTestText, OrderTexts, PairedDocument, TestText, TestTexts};
