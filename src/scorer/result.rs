//! The answer for one text, as the API and the command line give it.

use super::bound::Bound;
use super::error::{ScorerError, TextError};
use super::plan::Overflow;
use super::text::{PreparedText, Reading};
use crate::engine::Stats;
use mia::TokenStats;
use mia::methods::{self, Explanation, LabelledMethod, TextStats, WeightContext};
use serde::{Deserialize, Serialize, Serializer};
use std::cell::OnceCell;
use std::sync::Arc;
use utoipa::ToSchema;

/// Scores by label, in the order of the methods.
pub type Scores = Vec<(Arc<str>, f64)>;

/// The result for one text.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct TextResult {
    /// Place of the text among the inputs, from 0.
    pub index: usize,
    /// The id that came with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Number of tokens with a log-probability.
    pub scored_tokens: usize,
    /// The tokenizer put a special token before the text, so the first real token is scored.
    pub bos_prepended: bool,
    /// Only the first tokens that fit the model's context were scored.
    pub truncated: bool,
    /// In how many windows the text was read, where the request asks for windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<usize>,
    /// Score by label; higher means more likely a member of the training data.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub scores: Scores,
    /// The alpha of methods weighted by `slope`, which differs from text to text, by label.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    pub alpha_used: Scores,
    /// The p-value of each score against known non-members, by label, where the request names a calibration.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>, required = false)]
    pub p_values: Scores,
    /// Faults of what could not be computed.
    pub errors: Vec<TextError>,
    /// Every token in order, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<TokenDetail>>,
}

impl TextResult {
    /// The result of what was no text at all.
    pub fn failed(error: TextError) -> Self {
        Self { errors: vec![error], ..Self::default() }
    }
}

/// One token of a text. Numbers are in nats.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TokenDetail {
    /// The decoded piece; U+FFFD where its bytes are not valid UTF-8 alone.
    pub text: String,
    /// First code point of the raw text, and the one after the last.
    pub offset: [usize; 2],
    /// Token id.
    pub id: u32,
    /// Log-probability given all before it; null for a token that is never scored.
    pub lp: Option<f64>,
    /// Mean over the vocabulary of the log-probability at this position: minus the entropy.
    pub mu: Option<f64>,
    /// Standard deviation of the same.
    pub sigma: Option<f64>,
    /// Log-probability of the model's first choice.
    pub max_lp: Option<f64>,
    /// The methods, among those that select tokens, that have selected this one.
    #[schema(value_type = Vec<String>)]
    pub selected: Vec<Arc<str>>,
    /// Its weight in methods that weight tokens.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub weights: Scores,
    /// Contribution of the token to each score.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub contributions: Scores,
}

/// Cost of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Usage {
    /// Tokens scored.
    pub tokens: usize,
    /// Sequences run through a model.
    pub forward_passes: usize,
    /// Sequences answered from the cache.
    pub cached_passes: usize,
}

impl Usage {
    /// Adds what another part cost.
    pub fn add(&mut self, other: Self) {
        self.tokens += other.tokens;
        self.forward_passes += other.forward_passes;
        self.cached_passes += other.cached_passes;
    }
}

fn as_map<S: Serializer>(scores: &Scores, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(scores.iter().map(|(label, score)| (label, score)))
}

/// Computes all methods of a text that has been through the models, and lists its tokens where that was asked for. Gives the
/// ids of its scored tokens and their statistics, too; empty if it could not be run.
pub fn build(index: usize, text: PreparedText, bound: &Bound) -> Result<(TextResult, Arc<[u32]>, Stats), ScorerError> {
    let stats = text.sequence.stats()?;
    let auxiliary = text.auxiliary_stats()?;
    let scored_text = text.input.scored_text();
    let ids: Arc<[u32]> = text.reading.as_ref().map_or_else(Vec::new, Reading::scored_ids).into();
    let zlib_bytes = OnceCell::new();
    let zlib_bytes = || *zlib_bytes.get_or_init(|| methods::zlib_bytes(&scored_text));
    let summary = TextStats {
        tokens: &stats,
        ids: &ids,
        zlib_bytes: &zlib_bytes,
        passes: &auxiliary,
        token_counts: &bound.token_counts,
        context: WeightContext { text: &scored_text, dataset: &bound.dataset_weights },
    };
    let (mut scores, mut alpha_used) = (Scores::new(), Scores::new());
    let mut errors: Vec<TextError> = text.error.iter().cloned().collect();
    if errors.is_empty() {
        for method in bound.plan.methods.iter() {
            match methods::score(&method.method, &summary) {
                Ok(score) => scores.push((Arc::clone(&method.label), score)),
                Err(e) => errors.push(TextError {
                    label: Some(Arc::clone(&method.label)),
                    code: e.code(),
                    detail: e.to_string(),
                }),
            }
            let alpha = methods::alpha_used(&method.method, &summary);
            alpha_used.extend(alpha.map(|alpha| (Arc::clone(&method.label), alpha)));
        }
    }
    let result = TextResult {
        tokens: bound.plan.tokens.then(|| details(&text, &summary, bound)),
        index,
        scored_tokens: stats.len(),
        bos_prepended: text.reading.as_ref().is_some_and(|reading| reading.encoded.bos_prepended()),
        truncated: text.reading.as_ref().is_some_and(Reading::is_truncated),
        windows: (bound.plan.overflow == Overflow::Window && text.error.is_none()).then_some(text.sequence.count()),
        scores,
        p_values: Vec::new(),
        alpha_used,
        errors,
        id: text.input.id.clone(),
    };
    Ok((result, ids, stats))
}

fn details(text: &PreparedText, summary: &TextStats, bound: &Bound) -> Vec<TokenDetail> {
    let Some(reading) = &text.reading else { return Vec::new() };
    let explain = |method: &LabelledMethod| {
        let explanation = methods::explain(&method.method, summary).ok().flatten();
        explanation.map(|explanation| (Arc::clone(&method.label), explanation))
    };
    let explained: Vec<(Arc<str>, Explanation)> = bound.plan.methods.iter().filter_map(explain).collect();
    let detail = |(position, (&id, &(start, end))): (usize, (&u32, &(usize, usize)))| {
        let index = reading.statistics_index(position);
        let stats = index.and_then(|index| summary.tokens.get(index));
        let number = |field: fn(&TokenStats) -> f64| stats.map(field).filter(|x| x.is_finite());
        let numbers = |list: fn(&Explanation) -> &[f64]| {
            let entry = |(label, explanation): &(Arc<str>, Explanation)| {
                Some((Arc::clone(label), *list(explanation).get(index?)?))
            };
            explained.iter().filter_map(entry).collect()
        };
        let selected =
            |explanation: &Explanation| index.and_then(|index| explanation.selected.get(index)) == Some(&true);
        TokenDetail {
            text: bound.models[0].tokenizer.piece(id),
            offset: [start, end],
            id,
            lp: number(|stats| stats.lp),
            mu: number(|stats| stats.mu),
            sigma: number(TokenStats::sigma),
            max_lp: number(|stats| stats.max_lp),
            selected: explained.iter().filter(|(_, e)| selected(e)).map(|(label, _)| Arc::clone(label)).collect(),
            weights: numbers(|explanation| &explanation.weights),
            contributions: numbers(|explanation| &explanation.contributions),
        }
    };
    reading.ids.iter().zip(&reading.encoded.offsets).enumerate().map(detail).collect()
}
