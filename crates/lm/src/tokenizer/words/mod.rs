//! Determines which tokens are whole words, and which tokens can replace a word.
//!
//! There are two conventions to mark the start of a word, and they are read from the tokenizer itself:
//!
//! - WordPiece marks tokens that continue a word (`##ing`), and separates punctuation into its own words;
//! - byte-level BPE includes the space before a word in its token (`Ġword`), and so does SentencePiece (`▁word`).
//!   There, a token without a space continues the previous one if letters or digits meet, as in WordPiece: `Ġfox` and
//!   `.` are two words, `Ġfox` and `es` are one, and the first word of a text needs no space.

#[cfg(test)]
mod tests;

use super::TokenizerError;
use super::encode::{HubTokenizer, Tokenizer};
use std::sync::Arc;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::{Decoder, ModelWrapper};

/// The mask tokens of known tokenizers.
const MASKS: [&str; 2] = ["[MASK]", "<mask>"];

/// Maximum number of ids of a vocabulary whose words are listed; known ones have a few hundred thousand.
const MOST_IDS: usize = 1 << 24;

/// The space of SentencePiece.
const SPACE: char = '\u{2581}';

/// The words of a vocabulary.
pub struct Words {
    tokenizer: Tokenizer,
    convention: Convention,
    mask: u32,
    /// By id.
    traits: Vec<TokenTraits>,
    allowed: Arc<[bool]>,
}

/// Combination of a token with its neighbours. All false for special tokens and for white space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TokenTraits {
    /// It may be a word of its own.
    word: bool,
    /// It belongs to the previous word, if that one can be continued.
    continues: bool,
    /// It can be continued.
    continued: bool,
}

/// Marking of the start of a word by a tokenizer.
enum Convention {
    /// Tokens that continue a word have this prefix.
    Prefix(String),
    /// Tokens are encoded bytes, including the space before a word.
    Bytes,
    /// The space before a word is [`SPACE`].
    Space,
}

impl Tokenizer {
    /// The words of the vocabulary.
    pub fn words(&self) -> Result<Words, TokenizerError> {
        let masks = MASKS.iter().find_map(|mask| self.inner.token_to_id(mask));
        let mask = masks.ok_or_else(|| TokenizerError(format!("there is no mask token; expected one of {MASKS:?}")))?;
        let convention = Convention::detect(&self.inner)?;
        let unknown = unknown(&self.inner);
        let added = self.inner.get_added_tokens_decoder();
        let special = |id: u32| id == mask || added.get(&id).is_some_and(|token| token.special);
        let ids = self.id_bound();
        if ids > MOST_IDS {
            return Err(TokenizerError(format!("the largest token id is {}; the limit is {}", ids - 1, MOST_IDS - 1)));
        }
        let mut traits = vec![TokenTraits::default(); ids];
        let mut allowed = vec![false; ids];
        for (token, id) in self.inner.get_vocab(true) {
            let token_traits = if Some(id) == unknown {
                convention.unknown_token_traits()
            } else if special(id) {
                TokenTraits::default()
            } else {
                convention.token_traits(&token)
            };
            traits[id as usize] = token_traits;
            allowed[id as usize] = token_traits.word && !token_traits.continues && Some(id) != unknown;
        }
        Ok(Words { tokenizer: self.clone(), convention, mask, traits, allowed: allowed.into() })
    }
}

impl Words {
    /// The id of the mask.
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// True for the ids of tokens that may replace a word: they start a word and are neither special nor white space.
    pub fn allowed(&self) -> &Arc<[bool]> {
        &self.allowed
    }

    /// The positions of the tokens that are whole words. `offsets` are the tokens' ranges in the text: a token with an
    /// empty range, or one that overlaps another's, cannot be replaced on its own.
    pub fn whole(&self, ids: &[u32], offsets: &[(usize, usize)]) -> Vec<usize> {
        let tokens: Vec<(TokenTraits, (usize, usize))> = ids
            .iter()
            .map(|id| self.traits.get(*id as usize).copied().unwrap_or_default())
            .zip(offsets.iter().copied())
            .collect();
        let is_apart = |position: usize| {
            let pair = tokens.get(position).zip(tokens.get(position + 1));
            pair.is_none_or(|((a, span_a), (b, span_b))| {
                let joined = a.continued && b.continues;
                let shared = *a != TokenTraits::default() && *b != TokenTraits::default() && span_a.1 > span_b.0;
                !joined && !shared
            })
        };
        let is_whole = |position: &usize| {
            let (traits, (start, end)) = tokens[*position];
            traits.word && start < end && is_apart(*position) && position.checked_sub(1).is_none_or(is_apart)
        };
        (0..tokens.len()).filter(is_whole).collect()
    }

    /// The text of a token, without the mark of the start of a word.
    pub fn text(&self, id: u32) -> String {
        let token = self.tokenizer.inner.id_to_token(id).unwrap_or_default();
        self.convention.text(&token).trim().to_owned()
    }
}

impl Convention {
    fn detect(tokenizer: &HubTokenizer) -> Result<Self, TokenizerError> {
        let prefix = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => Some(&model.continuing_subword_prefix),
            ModelWrapper::BPE(model) => model.continuing_subword_prefix.as_ref(),
            ModelWrapper::Unigram(_) | ModelWrapper::WordLevel(_) => None,
        };
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            return Ok(Self::Prefix(prefix.clone()));
        }
        // Any of the three may define it, alone or in a sequence: searching their JSON covers all of them.
        let parts = (tokenizer.get_normalizer(), tokenizer.get_pre_tokenizer(), tokenizer.get_decoder());
        let parts = serde_json::to_string(&parts).map_err(|error| TokenizerError(error.to_string()))?;
        if parts.contains("\"ByteLevel\"") {
            Ok(Self::Bytes)
        } else if parts.contains(SPACE) {
            Ok(Self::Space)
        } else {
            Err(TokenizerError(
                "the tokenizer does not mark the start of words in a known way: no prefix, byte-level space or `▁`"
                    .into(),
            ))
        }
    }

    /// The text of a token, with a leading space if it has one; with U+FFFD if it is a part of a character.
    fn text(&self, token: &str) -> String {
        match self {
            Self::Prefix(prefix) => token.strip_prefix(prefix).unwrap_or(token).to_owned(),
            Self::Bytes => ByteLevel::default().decode_chain(vec![token.to_owned()]).unwrap_or_default().concat(),
            Self::Space if token.starts_with("<0x") && token.ends_with('>') => char::REPLACEMENT_CHARACTER.to_string(),
            Self::Space => token.replace(SPACE, " "),
        }
    }

    fn token_traits(&self, token: &str) -> TokenTraits {
        if let Self::Prefix(prefix) = self {
            let continues = token.starts_with(prefix);
            return TokenTraits { word: !continues, continues, continued: true };
        }
        let text = self.text(token);
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return TokenTraits::default();
        };
        let is_part = text.contains(char::REPLACEMENT_CHARACTER);
        TokenTraits {
            word: !is_part && !text.trim().is_empty(),
            continues: is_word_character(first),
            continued: is_word_character(last),
        }
    }

    /// The unknown token counts as a word, separated from tokens that belong to no word.
    fn unknown_token_traits(&self) -> TokenTraits {
        let continues = !matches!(self, Self::Prefix(_));
        TokenTraits { word: true, continues, continued: true }
    }
}

/// The id of the unknown token.
fn unknown(tokenizer: &HubTokenizer) -> Option<u32> {
    let token = match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => Some(model.unk_token.as_str()),
        ModelWrapper::WordLevel(model) => Some(model.unk_token.as_str()),
        ModelWrapper::BPE(model) => model.unk_token.as_deref(),
        // The model does not expose it.
        ModelWrapper::Unigram(_) => Some("<unk>"),
    };
    tokenizer.token_to_id(token?)
}

/// Returns true if a character can be part of a word: letters, digits, and their combining marks; or an incomplete character,
/// which might be one.
fn is_word_character(c: char) -> bool {
    let is_mark = matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{200c}' | '\u{200d}');
    c.is_alphanumeric() || is_mark || c == char::REPLACEMENT_CHARACTER
}
