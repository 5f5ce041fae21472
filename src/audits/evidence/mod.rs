//! What an audit's scores are evidence of: the verdict, and the controls that it rests on (`docs/verdict.md`).
//!
//! A score may tell members from others because the model was trained on them, or because the texts differ. Three controls
//! tell one from the other: the words of the texts, their lengths, and a model that has not seen the members.

mod basis;
mod blind;
mod calibrated;
mod control;
mod control_methods;
mod decision_request;
mod options;
mod placebo;
mod posterior;
mod primary;
mod request;
mod sentence;
mod verdict;

pub use basis::{Estimate, VerdictBasis, VerdictReason};
pub use blind::{BlindFindings, LengthFindings, blind_findings};
pub use calibrated::{CalibratedBasis, calibrated_verdict};
pub use control::{ControlFindings, ControlSample, control_findings};
pub use control_methods::{controls_itself, is_controllable};
pub use decision_request::{CalibrationShare, CalibrationSource, DecisionRequest};
pub use options::{DecisionOptions, EvidenceOptions, SampleFacts};
pub use placebo::Placebo;
pub use posterior::posteriors;
pub use primary::with_default_primary;
pub use request::{EvidenceRequest, StratifyBy};
pub use verdict::{Verdict, VerdictState, verdict};

/// Of the intervals that a verdict rests on.
pub const CONFIDENCE: f64 = 0.95;
/// The same audit has the same p-values.
pub const PERMUTATION_SEED: u64 = 0;
