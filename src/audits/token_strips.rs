//! Texts of an audit, token by token, for the page of its report.

use super::error::AuditFailure;
use super::report::{ExpandedRequest, Provenance};
use super::selected_tokens::is_of_text_alone;
use crate::datasets::Sample;
use crate::scorer::{IN_FLIGHT, Plan, Scorer, TextResult, TokenDetail};
use futures::{StreamExt, TryStreamExt, stream};
use mia::methods::LabelledMethod;
use pages::{StripToken, TextStrip};
use std::sync::Arc;

/// Maximum number of texts that a page shows token by token.
pub const MOST_STRIPS: usize = 100;

/// Scores the first texts of an audit again, by its primary method or else by the first that scores a text alone.
///
/// # Errors
/// [`AuditFailure`] if the model cannot run, or is not that of the audit any more.
pub async fn text_strips(
    provenance: &Provenance,
    samples: Vec<Sample>,
    scorer: &Scorer,
) -> Result<Vec<TextStrip>, AuditFailure> {
    let Some(method) = shown_method(&provenance.request) else { return Ok(Vec::new()) };
    let plan = Plan {
        model: provenance.model.clone(),
        methods: [method.clone()].into(),
        overflow: provenance.request.overflow,
        tokens: true,
        splits: Arc::new([]),
    };
    let bound = scorer.bind(&plan).await?;
    let model = &bound.models[0].info;
    if model.digest != provenance.model_digest || model.adapter != provenance.adapter_digest {
        return Err(AuditFailure::ModelChanged(model.id.clone()));
    }
    let score = |(index, sample): (usize, Sample)| {
        let (bound, member) = (&bound, sample.is_member());
        async move {
            let scored = scorer.score_behind(bound, sample.into_input()).await?;
            let result = scored.results.into_iter().next().unwrap_or_default();
            Ok::<_, AuditFailure>(strip(index, member, &method.label, result))
        }
    };
    stream::iter(samples.into_iter().enumerate()).map(score).buffered(IN_FLIGHT).try_collect().await
}

/// The primary method, or else the first, of those that score a text alone.
fn shown_method(request: &ExpandedRequest) -> Option<&LabelledMethod> {
    let possible = || request.methods.iter().filter(|method| is_of_text_alone(&method.method));
    let primary = possible().find(|method| Some(&method.label) == request.primary.as_ref());
    primary.or_else(|| possible().next())
}

fn strip(index: usize, member: Option<bool>, label: &Arc<str>, result: TextResult) -> TextStrip {
    let of_method =
        |values: &[(Arc<str>, f64)]| values.iter().find(|(known, _)| known == label).map(|(_, value)| *value);
    let token = |token: TokenDetail| StripToken {
        lp: token.lp,
        weight: of_method(&token.weights),
        contribution: of_method(&token.contributions),
        selected: token.selected.contains(label),
        text: token.text,
    };
    TextStrip {
        index,
        member,
        method: label.to_string(),
        score: of_method(&result.scores),
        tokens: result.tokens.into_iter().flatten().map(token).collect(),
    }
}
