//! Evidence from an audit's scores: the verdict, and the comparisons that it rests on (`docs/verdict.md`).
//!
//! A score may tell members from others because the model was trained on them, or because the texts differ. A classifier that
//! knows the texts alone, and a control model, tell one from the other.

mod comparison;
mod judge;
mod options;
mod request;
mod verdict;

pub use comparison::{
    ControlFindings, Effect, NegativeControl, NegativeControlSample, control_measures, controls_itself,
    is_controllable, negative_controls,
};
pub use judge::{VerdictBasis, common_assumptions, first_words, stated_p_value, verdict};
pub use options::{DecisionOptions, EvidenceOptions, with_default_primary};
pub use request::{
    CalibrationShare, CalibrationSource, CitedPlan, ControlDefault, DecisionRequest, EvidenceRequest, StratifyBy,
};
pub use verdict::{
    Design, FEWEST_CLUSTERS, Verdict, VerdictControl, VerdictModel, VerdictReason, VerdictSplits, VerdictState,
};

/// Of intervals that describe.
pub const CONFIDENCE: f64 = 0.95;
/// The level of every test that decides, one-sided.
pub const LEVEL: f64 = 0.01;
/// The power of what a test could have found.
pub const POWER: f64 = 0.8;
/// The same audit has the same p-values.
pub const PERMUTATION_SEED: u64 = 0;
