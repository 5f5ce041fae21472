//! Normalizers whose regular expressions fail instead of stopping, as those of [`pre_tokenizer`](super::pre_tokenizer) do.

use fancy_regex::Regex;
use serde::{Deserialize, Serialize};
use tokenizers::normalizers::NormalizerWrapper;
use tokenizers::normalizers::replace::ReplacePattern;
use tokenizers::{NormalizedString, Normalizer};

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

impl CheckedNormalizer {
    /// As it is declared.
    pub fn declared(&self) -> &NormalizerWrapper {
        &self.declared
    }
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
        self.steps.iter().try_for_each(|step| match step {
            CheckedStep::Expression { regex, content } => text.replace(regex, content).map_err(|error| {
                format!("the text cannot be normalized by the tokenizer's expression: {error}").into()
            }),
            CheckedStep::Plain(declared) => declared.normalize(text),
        })
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
}
