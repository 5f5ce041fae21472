//! Evidence from an audit's scores: the verdict, and the comparisons that it rests on (`docs/verdict.md`).
//!
//! A score may tell members from others because the model was trained on them, or because the texts differ. A classifier that
//! knows the texts alone, and a control model, tell one from the other.

mod blind;
mod comparison;
mod control_methods;
mod decision_request;
mod judge;
mod negative_controls;
mod options;
mod posterior;
mod primary;
mod request;
mod sentence;
mod verdict;

pub use blind::{BlindFindings, LengthFindings, blind_findings};
pub use comparison::{ControlFindings, Effect};
pub use control_methods::{control_measures, controls_itself, is_controllable};
pub use decision_request::{CalibrationShare, CalibrationSource, DecisionRequest};
pub use judge::{COMMITTED_BEFORE, VerdictBasis, verdict};
pub use negative_controls::{NegativeControl, NegativeControlSample, negative_controls};
pub use options::{DecisionOptions, EvidenceOptions, SampleFacts};
pub use posterior::posteriors;
pub use primary::with_default_primary;
pub use request::{CitedPlan, EvidenceRequest, StratifyBy};
pub use sentence::{first_words, stated_p_value};
pub use verdict::{Design, Verdict, VerdictControl, VerdictModel, VerdictReason, VerdictState};

/// Of intervals that describe.
pub const CONFIDENCE: f64 = 0.95;
/// The level of every test that decides, one-sided.
pub const LEVEL: f64 = 0.01;
/// The power of what a test could have found.
pub const POWER: f64 = 0.8;
/// The same audit has the same p-values.
pub const PERMUTATION_SEED: u64 = 0;
