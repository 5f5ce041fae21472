//! Tests that need no threshold: whether texts score higher than comparable ones that the model cannot have seen.
//!
//! There are four kinds ([`TestKind`]). All are samples that are scored as those of an audit are; a [`TestLayout`] says which
//! sample is what, and the report is a pure function of the request and the scores. Clients find them at `/v1/tests`.

mod basis;
mod commitment;
mod dataset;
mod document;
mod jobs;
mod judge;
mod kind;
mod layout;
mod measure;
mod options;
mod report;
mod request;
mod run;
mod sentence;
mod subject;
mod texts;
mod units;
mod verdict;

pub use commitment::{Commitment, commitment, commitment_fault};
pub use document::{BeyondControl, TestExclusion, TestMethod, TestReport, TestSamples};
pub use jobs::TestJob;
pub use kind::TestKind;
pub use layout::TestLayout;
pub use measure::TestStatistics;
pub use options::{TestOptions, test_method_faults};
pub use request::TestRequest;
pub use run::run_test;
pub use subject::TestSubject;
pub use texts::{Canary, MAX_SHUFFLES, NamedTestText, OrderTexts, PairedDocument, TestText, TestTexts};
pub use verdict::{TestVerdict, UnitVerdict};
