//! The results of a request.

use super::result::{TextResult, Usage};
use crate::engine::Stats;
use std::sync::Arc;
use std::time::Duration;

/// The results of a request, in the order of its inputs.
pub struct Scored {
    pub results: Vec<TextResult>,
    /// Statistics of each text's own tokens; empty if it could not be run.
    pub stats: Vec<Stats>,
    /// Ids of each text, the first of which is never scored; empty if it was not tokenized.
    pub ids: Vec<Arc<[u32]>>,
    pub usage: Usage,
    pub times: ScoringTimes,
}

/// Durations of the stages of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoringTimes {
    /// Until it was tokenized, and neighbours were made where a method wants some.
    pub tokenize: Duration,
    /// From then until the first forward pass began.
    pub queue: Duration,
    /// From then until the last one ended; nothing where all was in the cache.
    pub forward: Duration,
    /// Time of the methods.
    pub methods: Duration,
}
