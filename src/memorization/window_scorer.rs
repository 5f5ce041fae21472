//! Has windows scored by a model, and waits for one that is reloaded.

use super::error::MemorizationError;
use super::passes::PassLayout;
use super::request::WindowShape;
use crate::engine::{EngineError, Stats};
use crate::pool::ModelInfo;
use crate::retry::until_final;
use crate::scorer::{Bound, Overflow, Plan, Scorer, ScorerError, TextError};
use lm::tokenizer::Encoded;
use std::sync::Arc;

/// Has windows scored by a model that is open.
pub struct WindowScorer<'a> {
    scorer: &'a Scorer,
    plan: Plan,
    bound: Arc<Bound>,
    pub info: ModelInfo,
}

impl<'a> WindowScorer<'a> {
    pub async fn open(scorer: &'a Scorer, model: &str) -> Result<Self, MemorizationError> {
        let (methods, splits) = (Arc::new([]), Arc::new([]));
        let plan = Plan { model: model.to_owned(), methods, overflow: Overflow::Error, tokens: false, splits };
        let bind = || async { Ok(scorer.bind(&plan).await?) };
        let bound = until_final(MemorizationError::is_retryable, bind).await?;
        let info = bound.models[0].info.clone();
        Ok(Self { scorer, plan, bound, info })
    }

    /// All that the bits of its numbers depend on.
    #[must_use]
    pub fn numerics(&self) -> String {
        self.bound.numerics()
    }

    /// The passes of windows of this shape.
    ///
    /// # Errors
    /// Where a window does not fit into the context, with what the tokenizer puts before a text.
    pub async fn layout(&self, shape: WindowShape) -> Result<PassLayout, MemorizationError> {
        let specials = self.encode("".into()).await?.map_or(0, |encoded| encoded.specials_before);
        let WindowShape { prefix, suffix, .. } = shape;
        match self.bound.length_fault(shape.tokens().saturating_add(specials)) {
            Some(fault) => Err(MemorizationError::WindowTooLong { prefix, suffix, fault }),
            None => Ok(PassLayout::new(shape, specials, self.bound.longest())),
        }
    }

    /// A text in its ids, or why it has none.
    pub async fn encode(&self, text: Arc<str>) -> Result<Result<Arc<Encoded>, TextError>, MemorizationError> {
        Ok(self.scorer.encode(&self.bound, text).await?)
    }

    /// The statistics of a sequence, behind interactive work. A model that is being reloaded is waited for; one that fails on
    /// the sequence is asked once more.
    pub async fn stats(&self, ids: &Arc<[u32]>) -> Result<Stats, MemorizationError> {
        match self.scorer.score_ids_behind(&self.bound, ids).await {
            Err(error) if error.is_retryable() || matches!(error, ScorerError::Failed(EngineError::ModelFailed(_))) => {
                tracing::debug!(%error, "a window is scored again");
                until_final(MemorizationError::is_retryable, || self.stats_anew(ids)).await
            }
            scored => Ok(scored?),
        }
    }

    /// The same after the model was opened anew: this fails if it is another one now.
    async fn stats_anew(&self, ids: &Arc<[u32]>) -> Result<Stats, MemorizationError> {
        let bound = self.scorer.bind(&self.plan).await?;
        if bound.changed_since(&self.bound).is_some() {
            return Err(MemorizationError::ModelChanged(self.plan.model.clone()));
        }
        Ok(self.scorer.score_ids_behind(&bound, ids).await?)
    }
}
