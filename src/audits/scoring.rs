//! Scores the texts of an audit, and waits for a model that is being reloaded.

use super::error::AuditFailure;
use super::selected_tokens::{TextTokens, TokenSelection};
use crate::engine::EngineError;
use crate::retry::until_final;
use crate::scorer::{Bound, Input, Plan, Scored, Scorer, ScorerError};
use mia::methods::LabelledMethod;
use std::sync::Arc;

/// A plan whose models are open.
pub struct BoundPlan<'a> {
    scorer: &'a Scorer,
    plan: Plan,
    pub bound: Arc<Bound>,
    /// The selections whose tokens are counted.
    pub selections: Arc<[TokenSelection]>,
}

/// Some of the methods, on all texts.
pub struct Round<'a> {
    plan: &'a BoundPlan<'a>,
    methods: Vec<LabelledMethod>,
    dataset_weights: Arc<[f64]>,
    bound: Arc<Bound>,
}

impl<'a> BoundPlan<'a> {
    /// Opens what the plan names.
    pub async fn new(scorer: &'a Scorer, plan: Plan, selections: Vec<TokenSelection>) -> Result<Self, AuditFailure> {
        let bound = until_final(AuditFailure::is_retryable, || async { Ok(scorer.bind(&plan).await?) }).await?;
        Ok(Self { scorer, plan, selections: selections.into(), bound })
    }

    /// A round of these methods; `dataset_weights` are those of `entropy_dataset`, where they are known.
    pub fn round(&'a self, methods: Vec<LabelledMethod>, dataset_weights: Arc<[f64]>) -> Round<'a> {
        let bound = Arc::new(self.bound.only(methods.clone(), Arc::clone(&dataset_weights)));
        Round { plan: self, methods, dataset_weights, bound }
    }

    /// The plan bound anew, after a model was reloaded: this fails if it is another one now.
    async fn bind_again(&self) -> Result<Arc<Bound>, AuditFailure> {
        let bound = self.scorer.bind(&self.plan).await?;
        match bound.changed_since(&self.bound) {
            Some(changed) => Err(AuditFailure::ModelChanged(changed.to_owned())),
            None => Ok(bound),
        }
    }
}

impl Round<'_> {
    /// Scores one text, behind interactive work. A model that is being reloaded is waited for; one that fails on the text is
    /// asked once more.
    pub async fn score(&self, input: Input) -> Result<Scored, AuditFailure> {
        match self.plan.scorer.score_behind(&self.bound, input.clone()).await {
            Err(error) if error.is_retryable() || failed_to_run(&error) => {
                tracing::debug!(%error, "a text of an audit is scored again");
                until_final(AuditFailure::is_retryable, || self.score_anew(input.clone())).await
            }
            scored => Ok(scored?),
        }
    }

    /// As [`Round::score`], with the tokens of the text that this round counts: none if no selections are asked for.
    pub async fn score_and_select(&self, input: Input) -> Result<(Scored, TextTokens), AuditFailure> {
        let selections = Arc::clone(&self.plan.selections);
        if selections.is_empty() {
            return Ok((self.score(input).await?, TextTokens::default()));
        }
        let (text, entropies) = (input.scored_text().into_owned(), Arc::clone(&self.dataset_weights));
        let scored = self.score(input).await?;
        let (Some(ids), Some(stats)) = (scored.ids.first().cloned(), scored.stats.first().cloned()) else {
            return Ok((scored, TextTokens::default()));
        };
        let select = move || TextTokens::new(&selections, &text, &ids, &stats, &entropies);
        let tokens = self.plan.scorer.workers().run(select).await?;
        Ok((scored, tokens))
    }

    async fn score_anew(&self, input: Input) -> Result<Scored, AuditFailure> {
        let bound = self.plan.bind_again().await?;
        let bound = Arc::new(bound.only(self.methods.clone(), Arc::clone(&self.dataset_weights)));
        Ok(self.plan.scorer.score_behind(&bound, input).await?)
    }
}

/// True if an error of [`Round::score`] concerns this text alone, as far as one text can tell.
pub fn is_of_one_text(failure: &AuditFailure) -> bool {
    matches!(failure, AuditFailure::Scorer(error) if failed_to_run(error))
}

fn failed_to_run(error: &ScorerError) -> bool {
    matches!(error, ScorerError::Failed(EngineError::ModelFailed(_)))
}
