//! Normalizers that fail where those of the library would stop early or take all memory.
//!
//! Regular expressions fail instead of stopping, as those of [`pre_tokenizer`](super::pre_tokenizer) do. A `tokenizer.json` may
//! replace a character by many, several times over, so a text may grow [`GROWTH`]-fold and no more. The library normalizes a text
//! piece by piece, between its special tokens; since each piece is bounded by its own length, so is the whole.

use fancy_regex::Regex;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::{NormalizedString, Normalizer};

/// Maximum output of a normalizer, in bytes for each byte of the text and for its end. The library takes some 20 times as much memory.
const GROWTH: usize = 32;
/// Maximum output in bytes of a single step, for short texts.
const ROOM: usize = 32 << 20;
/// Maximum number of bytes that a step of the library makes of one. The longest decomposition of Unicode is that of U+FDFA,
/// 33 bytes of 3; [`charsmap`](super::charsmap) refuses maps that make more.
pub const STEP_GROWTH: usize = 11;

/// A normalizer as it is declared, and the steps that it takes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "NormalizerWrapper", into = "NormalizerWrapper")]
pub struct CheckedNormalizer {
    declared: NormalizerWrapper,
    steps: Vec<CheckedStep>,
}

#[derive(Clone, Debug)]
enum CheckedStep {
    /// `Replace` with an expression.
    Expression { regex: Regex, content: String },
    /// One that searches for no expression.
    Plain(NormalizerWrapper),
}

/// A `Replace` as it is serialized, since the library keeps the pattern to itself.
#[derive(Deserialize)]
struct Replacement {
    pattern: ReplacePattern,
    content: String,
}

impl TryFrom<NormalizerWrapper> for CheckedNormalizer {
    type Error = tokenizers::Error;

    fn try_from(declared: NormalizerWrapper) -> Result<Self, Self::Error> {
        let mut steps = Vec::new();
        add_steps(&declared, &mut steps)?;
        Ok(Self { declared, steps })
    }
}

impl From<CheckedNormalizer> for NormalizerWrapper {
    fn from(checked: CheckedNormalizer) -> Self {
        checked.declared
    }
}

fn add_steps(declared: &NormalizerWrapper, steps: &mut Vec<CheckedStep>) -> Result<(), tokenizers::Error> {
    match declared {
        NormalizerWrapper::Sequence(sequence) => {
            return sequence.as_ref().iter().try_for_each(|declared| add_steps(declared, steps));
        }
        NormalizerWrapper::Replace(replace) => {
            let Replacement { pattern, content } = serde_json::from_value(serde_json::to_value(replace)?)?;
            steps.push(match pattern {
                ReplacePattern::Regex(pattern) => CheckedStep::Expression { regex: Regex::new(&pattern)?, content },
                ReplacePattern::String(_) => CheckedStep::Plain(declared.clone()),
            });
        }
        _ => steps.push(CheckedStep::Plain(declared.clone())),
    }
    Ok(())
}

impl Normalizer for CheckedNormalizer {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        let bytes = text.get().len();
        let limit = GROWTH.saturating_mul(bytes + 1);
        self.steps.iter().try_for_each(|step| {
            check(step.most_bytes(text.get().len()), limit.max(ROOM), bytes)?;
            step.normalize(text)?;
            check(text.get().len(), limit, bytes)
        })
    }
}

/// A normalizer that notes its first failure and does nothing after it, for callers in the library that ignore failures.
pub struct NotedFailure<'a> {
    normalizer: &'a CheckedNormalizer,
    failure: OnceLock<tokenizers::Error>,
}

impl<'a> NotedFailure<'a> {
    /// No failure so far.
    pub fn new(normalizer: &'a CheckedNormalizer) -> Self {
        Self { normalizer, failure: OnceLock::new() }
    }

    /// Returns the first failure, if any.
    pub fn result(self) -> tokenizers::Result<()> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }
}

impl Normalizer for NotedFailure<'_> {
    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        if self.failure.get().is_none()
            && let Err(failure) = self.normalizer.normalize(text)
        {
            let _ = self.failure.set(failure);
        }
        Ok(())
    }
}

/// Returns an error if the output for a text of `bytes` bytes can be longer than `limit`.
fn check(most: usize, limit: usize, bytes: usize) -> tokenizers::Result<()> {
    if most <= limit {
        return Ok(());
    }
    Err(format!("its normalizer may make {most} bytes of a text of {bytes} bytes; the limit is {limit}").into())
}

impl CheckedStep {
    /// Maximum output in bytes for a text of `bytes` bytes.
    fn most_bytes(&self, bytes: usize) -> usize {
        let times = match self {
            // A pattern may match nothing before each character and at the end.
            Self::Expression { content, .. } => 1 + content.len(),
            Self::Plain(NormalizerWrapper::Replace(replace)) => 1 + replace.content.len(),
            Self::Plain(NormalizerWrapper::Prepend(prepend)) => 1 + prepend.prepend.len(),
            Self::Plain(_) => STEP_GROWTH,
        };
        times.saturating_mul(bytes + 1)
    }

    fn normalize(&self, text: &mut NormalizedString) -> tokenizers::Result<()> {
        match self {
            Self::Expression { regex, content } => text.replace(regex, content).map_err(|error| {
                format!("the text cannot be normalized by the tokenizer's expression: {error}").into()
            }),
            Self::Plain(declared) => declared.normalize(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn replace(pattern: &str) -> Value {
        json!({ "type": "Replace", "pattern": { "Regex": pattern }, "content": " " })
    }

    fn normalized(normalizer: &impl Normalizer, text: &str) -> tokenizers::Result<NormalizedString> {
        let mut text = NormalizedString::from(text);
        normalizer.normalize(&mut text)?;
        Ok(text)
    }

    #[test]
    fn texts_are_those_of_the_library() {
        let spaces = json!({ "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" });
        let nested =
            json!({ "type": "Sequence", "normalizers": [{ "type": "NFKD" }, replace(r"\s+(?!\S)"), replace(" {2,}")] });
        for declared in [json!({ "type": "Sequence", "normalizers": [nested.clone(), spaces.clone()] }), nested, spaces]
        {
            let library: NormalizerWrapper = serde_json::from_value(declared.clone()).unwrap();
            let checked: CheckedNormalizer = serde_json::from_value(declared.clone()).unwrap();
            for text in ["", "It's  a cl\u{f6}ck,\n\n  isn't it?   ", "word"] {
                let [ours, theirs] = [normalized(&checked, text).unwrap(), normalized(&library, text).unwrap()];
                assert_eq!(ours, theirs, "{declared} {text:?}");
            }
            assert_eq!(serde_json::to_value(&checked).unwrap(), serde_json::to_value(&library).unwrap());
        }
    }

    #[test]
    fn a_text_for_which_the_search_is_given_up_is_refused() {
        let declared = replace("(a|b|ab)*(?=c)| d");
        let text = format!("{} c d", "ab".repeat(30));
        let library: NormalizerWrapper = serde_json::from_value(declared.clone()).unwrap();
        assert!(normalized(&library, &text).unwrap().get().ends_with(" d"), "the library replaces to the end");
        let checked: CheckedNormalizer = serde_json::from_value(declared).unwrap();
        let error = normalized(&checked, &text).unwrap_err().to_string();
        assert!(error.starts_with("the text cannot be normalized"), "{error}");
        assert!(normalized(&checked, "ab d").is_ok());
    }

    #[test]
    fn an_expression_that_cannot_be_read_is_an_error() {
        assert!(serde_json::from_value::<CheckedNormalizer>(replace("(")).is_err());
    }

    fn checked(declared: &Value) -> CheckedNormalizer {
        serde_json::from_value(declared.clone()).unwrap()
    }

    /// Steps that each make ten letters of one.
    fn tenfold(times: usize) -> Value {
        let step = json!({ "type": "Replace", "pattern": { "String": "e" }, "content": "eeeeeeeeee" });
        json!({ "type": "Sequence", "normalizers": vec![step; times] })
    }

    #[test]
    fn a_text_that_would_take_all_memory_is_refused() {
        let hostile = checked(&tenfold(30));
        let error = normalized(&hostile, &"e".repeat(300)).unwrap_err().to_string();
        assert_eq!(error, "its normalizer may make 30000 bytes of a text of 300 bytes; the limit is 9632");
        // A text without the character stays as it is.
        assert!(normalized(&hostile, &"a".repeat(300)).is_ok());
        let nested = checked(&json!({ "type": "Sequence", "normalizers": [tenfold(15), tenfold(15)] }));
        assert!(normalized(&nested, "e").is_err() && normalized(&nested, "a").is_ok());
        let long = "e".repeat(40_000_000);
        for declared in [
            json!({ "type": "Prepend", "prepend": long }),
            json!({ "type": "Replace", "pattern": { "String": "a" }, "content": long }),
            json!({ "type": "Replace", "pattern": { "Regex": "$" }, "content": long }),
        ] {
            let error = normalized(&checked(&declared), "a").unwrap_err().to_string();
            assert!(error.contains("of a text of 1 bytes; the limit is 33554432"), "{error}");
        }
    }

    #[test]
    fn what_normalizers_do_in_earnest_is_allowed() {
        let long = "An ordinary text of a mebibyte. ".repeat(1 << 15);
        assert_eq!(long.len(), 1 << 20);
        for normalizer in [
            json!({ "type": "NFKC" }),
            json!({ "type": "Sequence", "normalizers": [
                { "type": "Prepend", "prepend": "\u{2581}" },
                { "type": "Replace", "pattern": { "String": " " }, "content": "\u{2581}" }
            ] }),
            json!({ "type": "Sequence", "normalizers": [
                { "type": "Replace", "pattern": { "String": "``" }, "content": "\"" },
                { "type": "NFKD" }, { "type": "StripAccents" }, { "type": "Lowercase" },
                { "type": "Replace", "pattern": { "Regex": " {2,}" }, "content": " " }
            ] }),
            json!({ "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true }),
        ] {
            assert!(normalized(&checked(&normalizer), &long).is_ok(), "{normalizer}");
        }
        let ligatures = "\u{fdfa}".repeat(1_000);
        for text in [&ligatures, &ligatures[..3]] {
            let normalizers = json!([{ "type": "NFKC" }, { "type": "Lowercase" }, { "type": "ByteLevel" }]);
            let normalizer = json!({ "type": "Sequence", "normalizers": normalizers });
            assert!(normalized(&checked(&normalizer), text).unwrap().get().len() > 20 * text.len());
        }
    }

    /// No step of the library makes more of a character than is assumed.
    #[test]
    fn steps_make_no_more_than_assumed() {
        let bert = json!({
            "type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": false, "lowercase": true,
        });
        let plain = ["NFC", "NFD", "NFKC", "NFKD", "Lowercase", "ByteLevel", "Nmt", "StripAccents"];
        for declared in plain.map(|kind| json!({ "type": kind })).into_iter().chain([bert]) {
            let step: NormalizerWrapper = serde_json::from_value(declared.clone()).unwrap();
            for character in (0..=0x10_ffff).filter_map(char::from_u32) {
                let bytes = normalized(&step, &character.to_string()).unwrap().get().len();
                assert!(bytes <= STEP_GROWTH * character.len_utf8(), "{declared} makes {bytes} bytes of {character:?}");
            }
        }
    }
}
