//! Tests that need no threshold: whether texts score higher than comparable ones that the model cannot have seen.
//!
//! There are four kinds ([`TrialKind`]). All are samples that are scored as those of an audit are; a [`TrialLayout`] says which
//! sample is what, and the report is a pure function of the request and the scores. Clients know them as `/v1/tests`; here they are
//! called trials, since a test is something else in Rust.

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
pub use document::{BeyondControl, TrialExclusion, TrialMethod, TrialReport, TrialSamples};
pub use jobs::TrialJob;
pub use kind::TrialKind;
pub use layout::TrialLayout;
pub use measure::TrialStatistics;
pub use options::{TrialOptions, trial_method_faults};
pub use request::TrialRequest;
pub use run::run_trial;
pub use subject::TrialSubject;
pub use texts::{Canary, MAX_SHUFFLES, NamedTrialText, OrderTexts, PairedDocument, TrialText, TrialTexts};
pub use verdict::{TrialVerdict, UnitVerdict};
