//! Progress events of a run.

use super::findings::SharedTextFindings;
use super::forecast::Forecast;
use serde::Serialize;

/// Progress event of a run.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// Number of samples read, before any is scored; most are read twice.
    Read { samples: usize },
    /// Text that known works share with the works tested, before any is scored.
    Shared(SharedTextFindings),
    /// Forecast of the work, before any is scored.
    Forecast(Forecast),
    /// The models are open; `numerics` is everything that the bits of the numbers depend on.
    Bound { numerics: String },
    /// A model is tuned on some of the samples.
    Tuned(TuningProgress),
    /// Number of finished samples.
    Scored { done: usize },
    /// All samples are scored: what follows are permutations and the report.
    Testing,
}

/// Progress of the tuning of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TuningProgress {
    pub seed: u64,
    pub step: usize,
    pub steps: usize,
    pub loss: f64,
}
