//! Which tokens are whole words, and which tokens may stand for one.
//!
//! Tokenizers tell in three ways where a word starts, and each is read from the tokenizer itself:
//!
//! - WordPiece marks what continues a word (`##ing`), and has punctuation in words of its own;
//! - byte-level BPE writes the space before a word into its token (`Ġword`), and so does SentencePiece (`▁word`). There a
//!   token without a space continues the one before it where letters or digits meet, as WordPiece would have it:
//!   `Ġfox` and `.` are two words, `Ġfox` and `es` are one, and the first word of a text needs no space.

#[cfg(test)]
mod tests;

use super::{Tokenizer, TokenizerError};
use std::sync::Arc;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::{Decoder, ModelWrapper, Tokenizer as HubTokenizer};

/// What the masks of known tokenizers are called.
const MASKS: [&str; 2] = ["[MASK]", "<mask>"];

/// The space of SentencePiece.
const SPACE: char = '\u{2581}';

/// What a vocabulary says about words.
pub struct Words {
    tokenizer: Tokenizer,
    convention: Convention,
    mask: u32,
    /// By id.
    traits: Vec<Traits>,
    allowed: Arc<[bool]>,
}

/// How a token behaves beside others. All false for special tokens and for white space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Traits {
    /// It may be a word of its own.
    word: bool,
    /// It belongs to the word before it, if that one can be continued.
    continues: bool,
    /// It can be continued.
    continued: bool,
}

/// Where a tokenizer writes down that a word starts.
enum Convention {
    /// Tokens that continue a word have this before them.
    Prefix(String),
    /// Tokens are bytes in disguise, the space before a word among them.
    Bytes,
    /// The space before a word is [`SPACE`].
    Space,
}

impl Tokenizer {
    /// What the vocabulary says about words.
    ///
    /// # Errors
    /// Where it has no mask token, or marks words in none of the known ways.
    pub fn words(&self) -> Result<Words, TokenizerError> {
        let masks = MASKS.iter().find_map(|mask| self.inner.token_to_id(mask));
        let mask = masks.ok_or_else(|| TokenizerError(format!("there is no mask token, none of {MASKS:?}")))?;
        let convention = Convention::of(&self.inner)?;
        let unknown = unknown(&self.inner);
        let added = self.inner.get_added_tokens_decoder();
        let special = |id: u32| id == mask || added.get(&id).is_some_and(|token| token.special);
        let mut traits = vec![Traits::default(); self.id_bound()];
        let mut allowed = vec![false; self.id_bound()];
        for (token, id) in self.inner.get_vocab(true) {
            let of_token = if Some(id) == unknown {
                convention.of_unknown()
            } else if special(id) {
                Traits::default()
            } else {
                convention.of_token(&token)
            };
            traits[id as usize] = of_token;
            allowed[id as usize] = of_token.word && !of_token.continues && Some(id) != unknown;
        }
        Ok(Words { tokenizer: self.clone(), convention, mask, traits, allowed: allowed.into() })
    }
}

impl Words {
    /// The id of the mask.
    pub fn mask(&self) -> u32 {
        self.mask
    }

    /// Whether a token may replace a word, by id: those that start a word and are neither special nor white space.
    pub fn allowed(&self) -> &Arc<[bool]> {
        &self.allowed
    }

    /// The positions of the tokens that are whole words. `offsets` are the tokens' parts of the text: a token that has none,
    /// or shares it with another, cannot be replaced alone.
    pub fn whole(&self, ids: &[u32], offsets: &[(usize, usize)]) -> Vec<usize> {
        let tokens: Vec<(Traits, (usize, usize))> = ids
            .iter()
            .map(|id| self.traits.get(*id as usize).copied().unwrap_or_default())
            .zip(offsets.iter().copied())
            .collect();
        let is_apart = |position: usize| {
            let pair = tokens.get(position).zip(tokens.get(position + 1));
            pair.is_none_or(|((a, span_a), (b, span_b))| {
                let joined = a.continued && b.continues;
                let shared = *a != Traits::default() && *b != Traits::default() && span_a.1 > span_b.0;
                !joined && !shared
            })
        };
        let is_whole = |position: &usize| {
            let (traits, (start, end)) = tokens[*position];
            traits.word && start < end && is_apart(*position) && position.checked_sub(1).is_none_or(is_apart)
        };
        (0..tokens.len()).filter(is_whole).collect()
    }

    /// The text of a token, without what marks the start of a word.
    pub fn text(&self, id: u32) -> String {
        let token = self.tokenizer.inner.id_to_token(id).unwrap_or_default();
        self.convention.text(&token).trim().to_owned()
    }
}

impl Convention {
    fn of(tokenizer: &HubTokenizer) -> Result<Self, TokenizerError> {
        let prefix = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => Some(&model.continuing_subword_prefix),
            ModelWrapper::BPE(model) => model.continuing_subword_prefix.as_ref(),
            ModelWrapper::Unigram(_) | ModelWrapper::WordLevel(_) => None,
        };
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            return Ok(Self::Prefix(prefix.clone()));
        }
        // Any of the three may hold it, alone or in a sequence: as JSON they are all searched alike.
        let parts = (tokenizer.get_normalizer(), tokenizer.get_pre_tokenizer(), tokenizer.get_decoder());
        let parts = serde_json::to_string(&parts).map_err(|error| TokenizerError(error.to_string()))?;
        if parts.contains("\"ByteLevel\"") {
            Ok(Self::Bytes)
        } else if parts.contains(SPACE) {
            Ok(Self::Space)
        } else {
            Err(TokenizerError("tells in no known way where words start: no prefix, byte-level space or `▁`".into()))
        }
    }

    /// The text of a token, with a space before it where it says so; with U+FFFD where it is a part of a character.
    fn text(&self, token: &str) -> String {
        match self {
            Self::Prefix(prefix) => token.strip_prefix(prefix).unwrap_or(token).to_owned(),
            Self::Bytes => ByteLevel::default().decode_chain(vec![token.to_owned()]).unwrap_or_default().concat(),
            Self::Space if token.starts_with("<0x") && token.ends_with('>') => char::REPLACEMENT_CHARACTER.to_string(),
            Self::Space => token.replace(SPACE, " "),
        }
    }

    fn of_token(&self, token: &str) -> Traits {
        if let Self::Prefix(prefix) = self {
            let continues = token.starts_with(prefix);
            return Traits { word: !continues, continues, continued: true };
        }
        let text = self.text(token);
        let (Some(first), Some(last)) = (text.chars().next(), text.chars().next_back()) else {
            return Traits::default();
        };
        let is_part = text.contains(char::REPLACEMENT_CHARACTER);
        Traits {
            word: !is_part && !text.trim().is_empty(),
            continues: is_of_a_word(first),
            continued: is_of_a_word(last),
        }
    }

    /// The token for what no other stands for counts as a word, between whatever belongs to none.
    fn of_unknown(&self) -> Traits {
        let continues = !matches!(self, Self::Prefix(_));
        Traits { word: true, continues, continued: true }
    }
}

/// The id of the token that stands for what has no other.
fn unknown(tokenizer: &HubTokenizer) -> Option<u32> {
    let token = match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => Some(model.unk_token.as_str()),
        ModelWrapper::WordLevel(model) => Some(model.unk_token.as_str()),
        ModelWrapper::BPE(model) => model.unk_token.as_deref(),
        // It does not tell.
        ModelWrapper::Unigram(_) => Some("<unk>"),
    };
    tokenizer.token_to_id(token?)
}

/// Whether a character is of the kind that words are made of: letters, digits, and the marks on them; or what is not a
/// whole character, which might be one.
fn is_of_a_word(c: char) -> bool {
    let is_mark = matches!(c,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}' | '\u{200c}' | '\u{200d}');
    c.is_alphanumeric() || is_mark || c == char::REPLACEMENT_CHARACTER
}
