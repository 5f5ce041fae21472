//! What a run tells while it goes on.

use serde::Serialize;

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// So many samples are read, before any is scored; most are read twice.
    Read { samples: usize },
    /// The models are open: what the bits of the numbers depend on.
    Bound { numerics: String },
    /// A model is tuned on some of the samples.
    Tuned(TuningProgress),
    /// So many samples are done.
    Scored { done: usize },
    /// All samples are scored: what follows are permutations and the report.
    Testing,
}

/// How far the tuning of an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TuningProgress {
    pub seed: u64,
    pub step: usize,
    pub steps: usize,
    pub loss: f64,
}
