//! Statistics of sequences of token ids, without a text and without a method.

use super::error::ScorerError;
use super::handle::Scorer;
use super::result::Usage;
use super::scored::ScoringTimes;
use crate::engine::{Class, Request, Stats};
use crate::pool::Model;
use std::sync::Arc;
use std::time::Instant;

/// The statistics of the sequences of a request, in their order.
pub struct SequenceStats {
    /// Of each sequence one entry per id but the first.
    pub sequences: Vec<Stats>,
    pub usage: Usage,
    pub times: ScoringTimes,
}

impl Scorer {
    /// Runs sequences of ids through a model that is open, as one interactive request, admitted whole or not at all. Equal
    /// sequences are one pass.
    ///
    /// # Errors
    /// [`ScorerError::Masked`] for a masked model; [`ScorerError::Refused`] or [`ScorerError::Failed`] by the engine.
    pub async fn token_stats(
        &self,
        model: &Model,
        sequences: &[Arc<[u32]>],
        deadline: Option<Instant>,
    ) -> Result<SequenceStats, ScorerError> {
        if model.masked {
            return Err(ScorerError::Masked(model.id().to_owned()));
        }
        let request = Request::new(model.id(), Arc::clone(&model.identity), Class::Interactive, deadline);
        let mut request = request.asked_by(&self.caller);
        let passes: Vec<_> = sequences.iter().map(|ids| request.score(ids)).collect();
        let mut times = ScoringTimes::default();
        let cost = self.run(vec![request], Class::Interactive, Usage::default(), &mut times).await?;
        let stats = passes.iter().map(|pass| pass.stats().cloned());
        let unanswered = || ScorerError::Internal("a sequence of an answered request has no statistics".to_owned());
        let sequences: Vec<Stats> = stats.collect::<Option<_>>().ok_or_else(unanswered)?;
        let usage = Usage { tokens: sequences.iter().map(|stats| stats.len()).sum(), ..cost };
        Ok(SequenceStats { sequences, usage, times })
    }
}
