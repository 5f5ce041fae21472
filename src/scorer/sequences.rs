//! Sequences of token ids that are scored as they are, without a method: for callers that cut texts by tokens.

use super::bound::{Bound, too_long};
use super::error::{ScorerError, TextError};
use super::handle::Scorer;
use super::result::Usage;
use super::score::ScoringTimes;
use crate::engine::{Class, Pass, Stats};
use crate::pool::Model;
use lm::tokenizer::Encoded;
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
    /// A text in the ids of the first model, or why it has none.
    pub async fn encode(
        &self,
        bound: &Arc<Bound>,
        text: Arc<str>,
    ) -> Result<Result<Arc<Encoded>, TextError>, ScorerError> {
        let bound = Arc::clone(bound);
        self.workers.run(move || bound.encode(0, &text, "text", false).map_err(TextError::from)).await
    }

    /// The statistics of a sequence of ids under the first model, behind interactive work and waiting for room as long as it
    /// takes. Many may run at once, [`IN_FLIGHT`](super::IN_FLIGHT) as a rule.
    pub async fn score_ids_behind(&self, bound: &Bound, ids: &Arc<[u32]>) -> Result<Stats, ScorerError> {
        let stats = self.score_sequences(&bound.models[0], &[Arc::clone(ids)], Class::Batch, None).await?;
        Ok(stats.sequences.concat().into())
    }

    /// Runs sequences of ids through a model that is open, as one interactive request, admitted whole or not at all. Equal
    /// sequences are one pass.
    pub async fn token_stats(
        &self,
        model: &Model,
        sequences: &[Arc<[u32]>],
        deadline: Option<Instant>,
    ) -> Result<SequenceStats, ScorerError> {
        if model.masked {
            return Err(ScorerError::Masked(model.id().to_owned()));
        }
        self.score_sequences(model, sequences, Class::Interactive, deadline).await
    }

    async fn score_sequences(
        &self,
        model: &Model,
        sequences: &[Arc<[u32]>],
        class: Class,
        deadline: Option<Instant>,
    ) -> Result<SequenceStats, ScorerError> {
        let mut request = self.request(model, class, deadline);
        let passes: Vec<_> = sequences.iter().map(|ids| request.add(Pass::score(Arc::clone(ids)))).collect();
        let mut times = ScoringTimes::default();
        let cost = self.run(vec![request], Usage::default(), &mut times).await?;
        let stats = passes.iter().map(|pass| pass.stats().cloned());
        let unanswered = || ScorerError::Internal("a sequence of an answered request has no statistics".to_owned());
        let sequences: Vec<Stats> = stats.collect::<Option<_>>().ok_or_else(unanswered)?;
        let usage = Usage { tokens: sequences.iter().map(|stats| stats.len()).sum(), ..cost };
        Ok(SequenceStats { sequences, usage, times })
    }
}

impl Bound {
    /// Maximum number of tokens of a sequence that the first model takes.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.models[0].longest
    }

    /// Describes the fault if `tokens` tokens are too many for the first model; `None` otherwise.
    #[must_use]
    pub fn length_fault(&self, tokens: usize) -> Option<String> {
        (tokens > self.models[0].longest).then(|| too_long(tokens, &self.models[0]))
    }
}
