//! Has windows scored by a model, and waits for one that is reloaded.

use super::continuation::{ContinuationSettings, Seed};
use super::error::MemorizationError;
use super::extraction::TextContinuation;
use super::passes::{PassLayout, WindowShape};
use super::request::MemorizationRequest;
use crate::engine::{EngineError, Stats};
use crate::pool::ModelInfo;
use crate::retry::until_final;
use crate::scorer::{Bound, Overflow, Plan, Scorer, ScorerError, TextError};
use lm::models::Continuation;
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
    /// Opens the model.
    ///
    /// # Errors
    /// Where it cannot be opened, or its server does not report the most probable tokens, by which windows count as greedy.
    pub async fn open(scorer: &'a Scorer, model: &str) -> Result<Self, MemorizationError> {
        let (methods, splits) = (Arc::new([]), Arc::new([]));
        let plan = Plan { model: model.to_owned(), methods, overflow: Overflow::Error, tokens: false, splits };
        // A model that is not there is reported by the binding.
        if scorer.pool().find(Some(model)).is_ok_and(|declaration| !declaration.origin.gives_first_choice()) {
            return Err(MemorizationError::WithoutFirstChoice(model.to_owned()));
        }
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

    /// The passes of a request's windows.
    ///
    /// # Errors
    /// Where a window or a continuation does not fit into the context, with what the tokenizer puts before a text, or the model
    /// continues no texts.
    pub async fn layout(&self, request: &MemorizationRequest) -> Result<PassLayout, MemorizationError> {
        let specials = self.encode("".into()).await?.map_or(0, |encoded| encoded.specials_before);
        let WindowShape { prefix, suffix, .. } = request.windows;
        if let Some(fault) = self.bound.length_fault(request.windows.tokens().saturating_add(specials)) {
            return Err(MemorizationError::WindowTooLong { prefix, suffix, fault });
        }
        if let Some(ContinuationSettings { tokens, .. }) = request.continuation {
            let given = prefix + specials;
            if let Some(fault) = self.bound.length_fault(given.saturating_add(tokens.saturating_sub(1))) {
                return Err(MemorizationError::ContinuationTooLong { prefix, tokens, fault });
            }
            self.scorer.check_continuation(&self.bound, given, tokens)?;
        }
        Ok(PassLayout::new(request.windows, specials, self.bound.longest()))
    }

    /// A text in its ids, or why it has none.
    pub async fn encode(&self, text: Arc<str>) -> Result<Result<Arc<Encoded>, TextError>, MemorizationError> {
        Ok(self.scorer.encode(&self.bound, text).await?)
    }

    /// The statistics of a sequence, behind interactive work. A model that is being reloaded is waited for; one that fails on
    /// the sequence is asked once more.
    pub async fn stats(&self, ids: &Arc<[u32]>) -> Result<Stats, MemorizationError> {
        match self.scorer.score_ids_behind(&self.bound, ids).await {
            Err(error) if is_asked_again(&error) => {
                let again = || async { Ok(self.scorer.score_ids_behind(&*self.bind_anew().await?, ids).await?) };
                until_final(MemorizationError::is_retryable, again).await
            }
            scored => Ok(scored?),
        }
    }

    /// Continues the passage of a text greedily, and compares it with what follows. Failures are met as in [`Self::stats`].
    pub async fn continued(
        &self,
        settings: ContinuationSettings,
        seed: Seed,
        text: Arc<str>,
    ) -> Result<TextContinuation, MemorizationError> {
        let (ids, rest, wanted) = (&seed.ids, &seed.rest, settings.tokens);
        let continued = match self.scorer.continue_ids(&self.bound, ids, rest, wanted).await {
            Err(error) if is_asked_again(&error) => {
                let again =
                    || async { Ok(self.scorer.continue_ids(&*self.bind_anew().await?, ids, rest, wanted).await?) };
                until_final(MemorizationError::is_retryable, again).await
            }
            continued => continued.map_err(MemorizationError::from),
        };
        let (continuation, written) = match continued {
            Ok(continuation) => {
                let written = self.scorer.continuation_text(&self.bound, ids, &continuation).await?;
                (continuation, written)
            }
            Err(MemorizationError::Scorer(error @ ScorerError::Failed(EngineError::ModelFailed(_)))) => {
                tracing::warn!(%error, "a text was not continued");
                (Continuation::default(), Err(TextError::model_failed()))
            }
            Err(error) => return Err(error),
        };
        let compare = move || settings.compare(&text, &seed, &continuation, written);
        Ok(self.scorer.workers().run(compare).await?)
    }

    /// The model opened anew: this fails if it is another one now.
    async fn bind_anew(&self) -> Result<Arc<Bound>, MemorizationError> {
        let bound = self.scorer.bind(&self.plan).await?;
        let ends = |bound: &Bound| bound.models[0].ends.clone();
        match bound.changed_since(&self.bound).is_some() || ends(&bound) != ends(&self.bound) {
            true => Err(MemorizationError::ModelChanged(self.plan.model.clone())),
            false => Ok(bound),
        }
    }
}

fn is_asked_again(error: &ScorerError) -> bool {
    let is_asked = error.is_retryable() || matches!(error, ScorerError::Failed(EngineError::ModelFailed(_)));
    if is_asked {
        tracing::debug!(%error, "a pass is run again");
    }
    is_asked
}
