//! What a run tells while it goes on.

use super::tuned_splits::TuningProgress;

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// The models are open: what the bits of the numbers depend on.
    Bound { numerics: String },
    /// A model is tuned on some of the samples.
    Tuned(TuningProgress),
    /// So many samples are done.
    Scored { done: usize },
}
