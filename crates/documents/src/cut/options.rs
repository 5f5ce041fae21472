//! The options of a cut.

use serde::{Deserialize, Serialize};
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// Maximum number of words of a passage.
pub const MAX_WORDS: usize = 100_000;

/// The way documents are cut into passages.
///
/// A passage holds whole paragraphs, sentences or words while they fit. What does not fit into `words` less `overlap` words by itself is
/// cut at the next finer unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Cut {
    /// Maximum number of words of a passage; 128 if left out.
    #[serde(default = "default_words")]
    #[schema(minimum = 1, maximum = 100_000)]
    pub words: usize,
    /// Number of words of the end of a passage that the next one begins with; at most half of `words`, 0 if left out.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub overlap: usize,
    /// The unit that passages are made of; `paragraph` if left out.
    #[serde(default)]
    pub at: CutAt,
}

/// The unit that passages are made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema, EnumString, VariantNames)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum CutAt {
    /// Paragraphs end with a blank line.
    #[default]
    Paragraph,
    /// Sentences end as Unicode has it (UAX #29).
    Sentence,
    Word,
}

/// The reason why documents cannot be cut so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CutFault {
    #[error("a passage has 1 to {MAX_WORDS} words, and not {0}")]
    Words(usize),
    #[error(
        "an overlap of {overlap} words is more than half of a passage of {words} words; lower the one or raise the other"
    )]
    Overlap { words: usize, overlap: usize },
}

fn default_words() -> usize {
    128
}

impl Default for Cut {
    fn default() -> Self {
        Self { words: default_words(), overlap: 0, at: CutAt::default() }
    }
}

impl Cut {
    /// Checks the numbers of words.
    ///
    /// # Errors
    /// If a passage has no words or too many, or is not longer than its overlap.
    pub fn check(&self) -> Result<(), CutFault> {
        match self {
            Self { words, .. } if !(1..=MAX_WORDS).contains(words) => Err(CutFault::Words(*words)),
            Self { words, overlap, .. } if *overlap > words / 2 => {
                Err(CutFault::Overlap { words: *words, overlap: *overlap })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_contract() {
        let cut: Cut = serde_json::from_str("{}").unwrap();
        assert_eq!(cut, Cut { words: 128, overlap: 0, at: CutAt::Paragraph });
        assert_eq!(serde_json::to_string(&cut).unwrap(), r#"{"words":128,"overlap":0,"at":"paragraph"}"#);
        assert!(serde_json::from_str::<Cut>(r#"{"word":1}"#).is_err());
    }

    #[test]
    fn words_and_overlap_are_checked() {
        let check = |words, overlap| Cut { words, overlap, at: CutAt::Word }.check();
        assert_eq!(check(0, 0), Err(CutFault::Words(0)));
        assert_eq!(check(MAX_WORDS + 1, 0), Err(CutFault::Words(MAX_WORDS + 1)));
        assert_eq!(check(8, 8), Err(CutFault::Overlap { words: 8, overlap: 8 }));
        assert_eq!(check(8, 9), Err(CutFault::Overlap { words: 8, overlap: 9 }));
        assert_eq!(check(8, 5), Err(CutFault::Overlap { words: 8, overlap: 5 }));
        assert_eq!((check(8, 4), check(1, 0), check(MAX_WORDS, 0)), (Ok(()), Ok(()), Ok(())));
    }
}
