//! The answer for one text, as the API and the command line give it.

use super::Answered;
use super::text::Prepared;
use crate::methods::{self, LabelledMethod, TextStats};
use crate::token_stats::TokenStats;
use crate::tokenizer::Tokenizer;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// Scores by label, in the order of the methods.
pub type Scores = Vec<(Arc<str>, f64)>;

/// The result for one text.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct TextResult {
    /// Place of the text among the inputs, from 0.
    pub index: usize,
    /// The id that came with the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// How many tokens have a log-probability.
    pub scored_tokens: usize,
    /// The tokenizer put a special token before the text, so the first real token is scored.
    pub bos_prepended: bool,
    /// Only the first tokens that fit the model's context were scored.
    pub truncated: bool,
    /// Score by label; higher means more likely a member of the training data.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub scores: Scores,
    /// What could not be computed, and why.
    pub errors: Vec<TextError>,
    /// Every token in order, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<TokenDetail>>,
}

impl TextResult {
    /// The result of what was no text at all.
    pub fn failed(error: TextError) -> Self {
        Self {
            index: 0,
            id: None,
            scored_tokens: 0,
            bos_prepended: false,
            truncated: false,
            scores: Vec::new(),
            errors: vec![error],
            tokens: None,
        }
    }
}

/// Why a text, or one method of it, has no score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TextError {
    /// The method concerned; absent when no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `too_short`, `too_long`, `untokenizable`, `zero_denominator`, `zero_weight` or `non_finite`.
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
    /// The fault in words.
    pub detail: String,
}

impl TextError {
    /// An error that concerns the whole text.
    pub fn whole(code: &'static str, detail: String) -> Self {
        Self { label: None, code: code.into(), detail }
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
    /// What the token adds to each score.
    #[serde(serialize_with = "as_map")]
    #[schema(value_type = std::collections::BTreeMap<String, f64>)]
    pub contributions: Scores,
}

/// What a request cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
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

/// Computes all methods of one text. With a tokenizer the result lists the tokens.
pub(super) fn build(answered: Answered, methods: &[LabelledMethod], tokenizer: Option<&Tokenizer>) -> TextResult {
    let Answered { index, text, stats } = answered;
    let stats = stats.as_deref().unwrap_or_default();
    let (mut scores, mut errors): (Scores, Vec<_>) = (Vec::new(), text.error.iter().cloned().collect());
    if errors.is_empty() {
        let summary = summary(&text, stats, methods);
        for LabelledMethod { label, method } in methods {
            match methods::score(method, &summary) {
                Ok(score) => scores.push((label.clone(), score)),
                Err(e) => errors.push(TextError {
                    label: Some(label.to_string()),
                    code: e.code().into(),
                    detail: e.to_string(),
                }),
            }
        }
    }
    let tokens = tokenizer.map(|tokenizer| details(&text, stats, methods, tokenizer));
    TextResult {
        index,
        scored_tokens: stats.len(),
        bos_prepended: text.encoded.as_ref().is_some_and(|e| e.bos_prepended),
        truncated: text.truncated,
        scores,
        errors,
        tokens,
        id: text.input.id,
    }
}

fn summary<'a>(text: &Prepared, stats: &'a [TokenStats], methods: &[LabelledMethod]) -> TextStats<'a> {
    let needed = methods.iter().any(|m| m.method.needs_zlib());
    TextStats { tokens: stats, zlib_bytes: if needed { methods::zlib_bytes(&text.input.text) } else { 0 } }
}

fn details(
    text: &Prepared,
    stats: &[TokenStats],
    methods: &[LabelledMethod],
    tokenizer: &Tokenizer,
) -> Vec<TokenDetail> {
    let Some(encoded) = &text.encoded else { return Vec::new() };
    let summary = summary(text, stats, methods);
    let contributions: Vec<(&Arc<str>, Vec<f64>)> = methods
        .iter()
        .filter_map(|m| methods::contributions(&m.method, &summary).ok().map(|c| (&m.label, c)))
        .collect();
    let detail = |(position, (&id, &(start, end))): (usize, (&u32, &(usize, usize)))| {
        // The token at position t has the statistics t - 1: the first is never scored.
        let scored = position.checked_sub(1).and_then(|at| stats.get(at).map(|s| (at, s)));
        let number = |field: fn(&TokenStats) -> f64| scored.map(|(_, s)| field(s)).filter(|x| x.is_finite());
        TokenDetail {
            text: tokenizer.piece(id),
            offset: [start, end],
            id,
            lp: number(|s| s.lp),
            mu: number(|s| s.mu),
            sigma: number(|s| s.sigma()),
            max_lp: number(|s| s.max_lp),
            contributions: scored
                .map(|(at, _)| contributions.iter().map(|(label, c)| ((*label).clone(), c[at])).collect())
                .unwrap_or_default(),
        }
    };
    encoded.ids.iter().zip(&encoded.offsets).enumerate().map(detail).collect()
}
