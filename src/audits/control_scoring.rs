//! The control model scores the samples of an audit as the target does, each text right after the target.

use super::columns::Column;
use super::error::AuditFailure;
use super::evidence::{control_measures, is_controllable};
use super::request::AuditRequest;
use super::run_event::TuningProgress;
use super::sample_index::SampleIndex;
use super::scoring::{BoundPlan, Round, is_of_one_text};
use super::selected_tokens::TextTokens;
use super::tuned_splits::TunedSplits;
use crate::datasets::SampleBlocks;
use crate::pool::Retry;
use crate::retry::until_final;
use crate::scorer::{Input, Plan, Scored, Scorer, ScorerError};
use mia::methods::LabelledMethod;
use std::sync::Arc;

/// The control model with the methods that it computes.
pub struct ControlScoring<'a> {
    pub plan: BoundPlan<'a>,
    methods: Vec<LabelledMethod>,
    /// Its own tunings for `fsd`.
    pub tuned: TunedSplits,
}

impl<'a> ControlScoring<'a> {
    /// Opens the control model of an audit, and tunes it if `fsd` asks for that. Returns `None` if the request names no control.
    pub async fn open(
        scorer: &'a Scorer,
        request: &AuditRequest,
        columns: &[Column],
        index: &SampleIndex,
        samples: &SampleBlocks,
        progress: impl Fn(TuningProgress),
    ) -> Result<Option<Self>, AuditFailure> {
        let Some(control) = &request.evidence.control else { return Ok(None) };
        let open = |id| {
            until_final(AuditFailure::is_retryable, move || async move {
                Ok(scorer.pool().open(id, Retry::AfterPause).await.map_err(ScorerError::from)?)
            })
        };
        let (target, model) = (open(&*request.model).await?, open(&**control).await?);
        if model.masked {
            return Err(ScorerError::Masked(control.clone()).into());
        }
        // The base of a fine-tune has seen everything but what the adapter was tuned on.
        let is_other_tuning = target.info.adapter.is_some() && model.info.adapter != target.info.adapter;
        if model.info.digest == target.info.digest && !is_other_tuning {
            let (control, model) = (control.clone(), request.model.clone());
            return Err(AuditFailure::ControlIsTarget { control, model });
        }
        let same_tokenization = scorer.same_tokens(&target, &model).await?;
        let gives_logits = scorer.pool().find(Some(control)).is_ok_and(|declaration| declaration.origin.gives_logits());
        drop((target, model));
        let controlled: Vec<LabelledMethod> = columns
            .iter()
            .map(|column| &column.method)
            .filter(|method| is_controllable(method, same_tokenization))
            .cloned()
            .collect();
        // The order of the columns, then the measures.
        let measures =
            control_measures().into_iter().filter(|method| gives_logits || !method.method.needs_full_logits());
        let methods: Vec<LabelledMethod> = controlled.into_iter().chain(measures).collect();
        let tuned = TunedSplits::tune(control, &methods, index, samples, scorer, progress).await?;
        let plan = Plan {
            model: control.clone(),
            methods: methods.as_slice().into(),
            splits: Arc::clone(&tuned.splits),
            ..Plan::from(request)
        };
        Ok(Some(Self { plan: BoundPlan::new(scorer, plan, Vec::new()).await?, methods, tuned }))
    }

    /// Scores texts by all methods of the control.
    pub fn round(&'a self) -> Round<'a> {
        self.plan.round(self.methods.clone(), Arc::new([]))
    }
}

/// A round of the target and, where there is one, of the control.
pub struct PairedRound<'a> {
    pub target: Round<'a>,
    pub control: Option<Round<'a>>,
}

/// Scores of a text under both models.
pub struct PairedScored {
    pub target: Scored,
    /// The tokens that the target's round counts.
    pub tokens: TextTokens,
    pub control: Option<Scored>,
}

impl PairedRound<'_> {
    /// Scores one text under both models, the control right after the target: where `ref` has run the control over the text, the
    /// cache has the statistics still.
    /// A text that the control fails on alone has no score under it.
    pub async fn score(&self, input: Input) -> Result<PairedScored, AuditFailure> {
        let (target, tokens) = self.target.score_and_select(input.clone()).await?;
        let Some(round) = &self.control else { return Ok(PairedScored { target, tokens, control: None }) };
        let control = match round.score(input).await {
            Err(error) if is_of_one_text(&error) => {
                tracing::error!(%error, "the control model failed on a sample of an audit");
                None
            }
            scored => Some(scored?),
        };
        Ok(PairedScored { target, tokens, control })
    }
}
