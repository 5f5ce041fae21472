//! One text on its way to the model: checked, tokenized, cut if the request allows it.

use super::TextError;
use crate::tokenizer::{Encoded, Tokenizer};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// A text to score.
#[derive(Clone, Debug)]
pub struct Input {
    /// Given back with the result.
    pub id: Option<String>,
    pub text: String,
}

/// What to do with a text that is longer than the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overflow {
    /// The text fails with `too_long`.
    #[default]
    Error,
    /// The first tokens that fit are scored, special tokens counted, and the result says `truncated`.
    Truncate,
}

/// What a text must satisfy.
pub struct TextRules {
    pub tokenizer: Tokenizer,
    /// The most tokens that can run.
    pub longest: usize,
    pub context: Option<usize>,
    pub text_limit: u64,
    pub overflow: Overflow,
}

/// A text with its ids, or with the reason why it cannot be scored.
pub struct Prepared {
    pub input: Input,
    pub truncated: bool,
    /// None where the text was not tokenized.
    pub encoded: Option<Encoded>,
    ids: Arc<[u32]>,
    pub error: Option<TextError>,
}

impl Prepared {
    /// Tokenizes the text and applies the rules.
    pub fn new(input: Input, rules: &TextRules) -> Self {
        let bytes = input.text.len();
        if bytes as u64 > rules.text_limit {
            let detail = format!("the text has {bytes} bytes; the limit `limits.text` is {}", rules.text_limit);
            return Self::failed(input, TextError::whole("too_long", detail));
        }
        match rules.tokenizer.encode(&input.text) {
            Ok(encoded) => Self::fit(input, encoded, rules),
            Err(error) => Self::failed(input, TextError::whole("untokenizable", error.to_string())),
        }
    }

    /// The ids to run through the model; none for a text that cannot be scored.
    pub fn sequence(&self) -> Option<Arc<[u32]>> {
        self.error.is_none().then(|| self.ids.clone())
    }

    fn fit(input: Input, mut encoded: Encoded, rules: &TextRules) -> Self {
        let (tokens, longest) = (encoded.ids.len(), rules.longest);
        let truncated = tokens > longest;
        if truncated && rules.overflow == Overflow::Error {
            let detail = match rules.context.filter(|&context| context == longest) {
                Some(context) => format!("the text has {tokens} tokens; the model's context is {context}"),
                None => format!("the text has {tokens} tokens; the device has memory for {longest}"),
            };
            return Self::failed(input, TextError::whole("too_long", detail));
        }
        encoded.ids.truncate(longest);
        encoded.offsets.truncate(longest);
        let error = (encoded.ids.len() < 2).then(|| {
            let detail =
                format!("the text has {} token(s); the first is never scored, so at least 2 are needed", tokens);
            TextError::whole("too_short", detail)
        });
        Self { input, truncated, ids: encoded.ids.clone().into(), encoded: Some(encoded), error }
    }

    fn failed(input: Input, error: TextError) -> Self {
        Self { input, truncated: false, encoded: None, ids: Arc::new([]), error: Some(error) }
    }
}
