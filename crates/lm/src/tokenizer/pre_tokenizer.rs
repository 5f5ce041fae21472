//! Pre-tokenizers whose regular expressions fail instead of stopping.
//!
//! An expression with a look-around is searched for by backtracking, which the engine gives up after a million steps or with a million
//! states to come back to: of GPT-2's `\s+(?!\S)`, at a run of more than a million spaces. The library takes that for the end of
//! the matches, so that all the rest of the text becomes one piece and has other ids, and nobody is told. Here the text is refused.

use fancy_regex::Regex;
use serde::{Deserialize, Serialize};
use tokenizers::pattern::Invert;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{NormalizedString, PreTokenizedString, PreTokenizer, PreTokenizerWrapper, SplitDelimiterBehavior};

/// The expression of `ByteLevel`, which the library keeps to itself.
const BYTE_LEVEL: &str = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+";

/// Type of the pieces of a text in the library.
type Pieces = tokenizers::Result<Vec<NormalizedString>>;

/// A pre-tokenizer as it is declared, and the steps that it takes.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "PreTokenizerWrapper", into = "PreTokenizerWrapper")]
pub struct CheckedPreTokenizer {
    declared: PreTokenizerWrapper,
    steps: Vec<SplitStep>,
}

#[derive(Clone, Debug)]
enum SplitStep {
    Expression {
        regex: Regex,
        behavior: SplitDelimiterBehavior,
        /// True if the pieces are the text between the matches.
        invert: bool,
    },
    /// `ByteLevel` with its expression.
    Words { regex: Regex, byte_level: ByteLevel },
    /// One that searches for no such expression.
    Plain(PreTokenizerWrapper),
}

impl TryFrom<PreTokenizerWrapper> for CheckedPreTokenizer {
    type Error = fancy_regex::Error;

    fn try_from(declared: PreTokenizerWrapper) -> Result<Self, Self::Error> {
        let mut steps = Vec::new();
        add_steps(&declared, &mut steps)?;
        Ok(Self { declared, steps })
    }
}

impl From<CheckedPreTokenizer> for PreTokenizerWrapper {
    fn from(checked: CheckedPreTokenizer) -> Self {
        checked.declared
    }
}

fn add_steps(declared: &PreTokenizerWrapper, steps: &mut Vec<SplitStep>) -> Result<(), fancy_regex::Error> {
    use PreTokenizerWrapper as Kind;
    let step = match declared {
        Kind::Sequence(sequence) => {
            return sequence.as_ref().iter().try_for_each(|declared| add_steps(declared, steps));
        }
        Kind::Split(Split { pattern: SplitPattern::Regex(pattern), behavior, invert, .. }) => {
            SplitStep::Expression { regex: Regex::new(pattern)?, behavior: *behavior, invert: *invert }
        }
        Kind::ByteLevel(byte_level) if byte_level.use_regex => {
            SplitStep::Words { regex: Regex::new(BYTE_LEVEL)?, byte_level: *byte_level }
        }
        Kind::Split(_)
        | Kind::ByteLevel(_)
        | Kind::BertPreTokenizer(_)
        | Kind::Delimiter(_)
        | Kind::Metaspace(_)
        | Kind::Whitespace(_)
        | Kind::Punctuation(_)
        | Kind::WhitespaceSplit(_)
        | Kind::Digits(_)
        | Kind::UnicodeScripts(_)
        | Kind::FixedLength(_) => SplitStep::Plain(declared.clone()),
    };
    steps.push(step);
    Ok(())
}

impl PreTokenizer for CheckedPreTokenizer {
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> tokenizers::Result<()> {
        self.steps.iter().try_for_each(|step| step.pre_tokenize(text))
    }
}

impl PreTokenizer for SplitStep {
    /// As the library does it, with an expression whose failure is an error.
    fn pre_tokenize(&self, text: &mut PreTokenizedString) -> tokenizers::Result<()> {
        match self {
            Self::Expression { regex, behavior, invert: false } => {
                text.split(|_, piece| named(piece.split(regex, *behavior)))
            }
            Self::Expression { regex, behavior, invert: true } => {
                text.split(|_, piece| named(piece.split(Invert(regex), *behavior)))
            }
            Self::Words { regex, byte_level } => {
                text.split(|_, mut piece| {
                    if byte_level.add_prefix_space && !piece.get().starts_with(' ') {
                        piece.prepend(" ");
                    }
                    named(piece.split(regex, SplitDelimiterBehavior::Isolated))
                })?;
                byte_level.add_prefix_space(false).use_regex(false).pre_tokenize(text)
            }
            Self::Plain(declared) => declared.pre_tokenize(text),
        }
    }
}

/// The pieces, or an error that says what cannot be done.
fn named(pieces: Pieces) -> Pieces {
    pieces
        .map_err(|error| format!("the text cannot be split into pieces by the tokenizer's expression: {error}").into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tokenizers::{OffsetReferential, OffsetType};

    /// The pieces of a text with their offsets.
    fn pieces(pre_tokenizer: &impl PreTokenizer, text: &str) -> tokenizers::Result<Vec<(String, (usize, usize))>> {
        let mut pieces = PreTokenizedString::from(text);
        pre_tokenizer.pre_tokenize(&mut pieces)?;
        let splits = pieces.get_splits(OffsetReferential::Original, OffsetType::Byte).into_iter();
        Ok(splits.map(|(piece, offsets, _)| (piece.to_owned(), offsets)).collect())
    }

    fn split(pattern: &str, behavior: &str, invert: bool) -> Value {
        json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": behavior, "invert": invert })
    }

    fn byte_level(add_prefix_space: bool, use_regex: bool) -> Value {
        json!({ "type": "ByteLevel", "add_prefix_space": add_prefix_space, "trim_offsets": true, "use_regex": use_regex })
    }

    fn checked(declared: &Value) -> CheckedPreTokenizer {
        serde_json::from_value(declared.clone()).unwrap()
    }

    #[test]
    fn pieces_are_those_of_the_library() {
        let llama =
            r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
        let mut declared = vec![
            json!({ "type": "Whitespace" }),
            json!({ "type": "Sequence", "pretokenizers": [
            split(llama, "Isolated", false), byte_level(false, false) ] }),
        ];
        declared.push(json!({ "type": "Split", "pattern": { "String": " " }, "behavior": "Removed", "invert": false }));
        for space in [true, false] {
            declared.extend([byte_level(space, true), byte_level(space, false)]);
            for behavior in ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"] {
                declared.push(split(r"\s+(?!\S)|\w+", behavior, space));
            }
        }
        for declared in declared {
            let library: PreTokenizerWrapper = serde_json::from_value(declared.clone()).unwrap();
            let checked = checked(&declared);
            for text in ["", " ", "It's  a cl\u{f6}ck,\n\n  isn't it?  12345 \u{1f600}", "word   ", "\t\tx"] {
                assert_eq!(pieces(&checked, text).unwrap(), pieces(&library, text).unwrap(), "{declared} {text:?}");
            }
            assert_eq!(serde_json::to_value(&checked).unwrap(), serde_json::to_value(&library).unwrap());
        }
    }

    #[test]
    fn a_text_for_which_the_search_is_given_up_is_refused() {
        let spaces = format!("a{}b c", " ".repeat(1_100_000));
        let many = format!("{} c d", "ab".repeat(30));
        for (declared, text) in
            [(byte_level(false, true), &spaces), (split("(a|b|ab)*(?=c)| c| d", "Isolated", false), &many)]
        {
            let library: PreTokenizerWrapper = serde_json::from_value(declared.clone()).unwrap();
            let last = pieces(&library, text).unwrap().pop().unwrap().0;
            assert!(last.len() > 50, "the library splits the text to its end");
            let error = pieces(&checked(&declared), text).unwrap_err().to_string();
            assert!(error.starts_with("the text cannot be split into pieces"), "{error}");
        }
        assert!(pieces(&checked(&byte_level(false, true)), &spaces[..900_000]).is_ok());
    }
}
