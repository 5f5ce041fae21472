//! Encodes texts as token ids.

use super::TokenizerError;
use super::charsmap;
use super::checked_normalizer::{CheckedNormalizer, NotedFailure};
use super::guarded;
use super::pre_tokenizer::CheckedPreTokenizer;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tokenizers::{
    DecoderWrapper, Encoding, Model, ModelWrapper, OffsetType, PostProcessorWrapper, PreTokenizer, TokenizerImpl,
};

/// A tokenizer of the library, which refuses what it cannot normalize or split.
pub(super) type HubTokenizer =
    TokenizerImpl<ModelWrapper, CheckedNormalizer, CheckedPreTokenizer, PostProcessorWrapper, DecoderWrapper>;

/// A tokenizer, cheap to clone and safe to share between threads.
#[derive(Clone)]
pub struct Tokenizer {
    pub(super) inner: Arc<HubTokenizer>,
    pub(super) fingerprint: Arc<OnceLock<Result<String, TokenizerError>>>,
    /// False if no special tokens are added to texts.
    pub(super) adds_specials: bool,
}

/// One text as ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub ids: Arc<[u32]>,
    /// Start and end of each token in Unicode code points of the original text, as reported by the tokenizer.
    pub offsets: Vec<(usize, usize)>,
    /// The number of special tokens that the tokenizer added before the text.
    pub specials_before: usize,
    /// The number of special tokens that it added after the text.
    pub specials_after: usize,
}

impl Encoded {
    /// Returns true if there is a special token before the text.
    pub fn bos_prepended(&self) -> bool {
        self.specials_before > 0
    }

    /// Which of the ids are those of the text itself.
    pub fn text(&self) -> Range<usize> {
        self.specials_before..self.ids.len() - self.specials_after
    }
}

impl Tokenizer {
    /// Reads a `tokenizer.json`. Truncation and padding are disabled, so that no text is truncated silently.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TokenizerError> {
        charsmap::check(bytes)?;
        let read = guarded(|| HubTokenizer::from_bytes(bytes))?;
        let mut inner = read.map_err(|e| TokenizerError(e.to_string()))?;
        inner.with_truncation(None).map_err(|e| TokenizerError(e.to_string()))?;
        inner.with_padding(None);
        Ok(Self { inner: Arc::new(inner), fingerprint: Arc::default(), adds_specials: true })
    }

    /// The same tokenizer, which adds no special tokens to texts: for those who add them elsewhere.
    #[must_use]
    pub fn without_special_tokens(&self) -> Self {
        Self { adds_specials: false, ..self.clone() }
    }

    /// Encodes the text of a chat template. One that begins with the special tokens that the tokenizer adds itself, as most templates
    /// write it, is not given them twice, and none after it: transformers adds none to such a text.
    pub fn encode_chat(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let encoded = self.encode(text)?;
        let (before, rest) = encoded.ids.split_at(encoded.specials_before);
        if before.is_empty() || !rest.starts_with(before) {
            return Ok(encoded);
        }
        let encoding = self.encoding(text, false, OffsetType::Char)?;
        let (ids, offsets) = (encoding.get_ids().into(), encoding.get_offsets().to_vec());
        Ok(Encoded { ids, offsets, specials_after: 0, ..encoded })
    }

    /// Encodes a text with the tokenizer's default special tokens.
    pub fn encode(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let encoding = self.encoding(text, self.adds_specials, OffsetType::Char)?;
        let special = |mark: &&u32| **mark == 1;
        let marks = encoding.get_special_tokens_mask();
        let specials_before = marks.iter().take_while(special).count();
        Ok(Encoded {
            ids: encoding.get_ids().into(),
            offsets: encoding.get_offsets().to_vec(),
            specials_before,
            specials_after: marks[specials_before..].iter().rev().take_while(special).count(),
        })
    }

    /// The ids of a text without the special tokens that the tokenizer adds.
    pub fn plain_ids(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        Ok(self.encoding(text, false, OffsetType::None)?.get_ids().to_vec())
    }

    fn encoding(&self, text: &str, specials: bool, offsets: OffsetType) -> Result<Encoding, TokenizerError> {
        let encoded = guarded(|| encode(&self.inner, text, specials, offsets))?;
        encoded.map_err(|error| TokenizerError(error.to_string()))
    }

    /// The text that ids stand for, without special tokens. Bytes that are not valid UTF-8 are U+FFFD; some tokenizers drop the
    /// space that the first id begins with.
    ///
    /// # Errors
    /// If the decoder of the tokenizer fails; ids that the tokenizer does not have are left out.
    pub fn decode(&self, ids: &[u32]) -> Result<String, TokenizerError> {
        guarded(|| self.inner.decode(ids, true))?.map_err(|error| TokenizerError(error.to_string()))
    }

    /// The text of the last ids of a sequence as they stand behind those before: what decoding all of them gives beyond decoding
    /// the first `given`, from the first character on that differs.
    ///
    /// # Errors
    /// Those of [`Self::decode`].
    pub fn decode_behind(&self, ids: &[u32], given: usize) -> Result<String, TokenizerError> {
        let (before, whole) = (self.decode(&ids[..given.min(ids.len())])?, self.decode(ids)?);
        let mut characters = whole.chars();
        for expected in before.chars() {
            let rest = characters.as_str();
            if characters.next() != Some(expected) {
                return Ok(rest.to_owned());
            }
        }
        Ok(characters.as_str().to_owned())
    }

    /// The text of one token; U+FFFD if its bytes alone are not valid UTF-8.
    pub fn piece(&self, id: u32) -> String {
        guarded(|| self.inner.decode(&[id], false).unwrap_or_default()).unwrap_or_default()
    }

    /// One more than the largest id of the tokenizer.
    pub fn id_bound(&self) -> usize {
        self.inner.get_vocab(true).values().max().map_or(0, |&id| id as usize + 1)
    }
}

/// Encodes a text as the library does, but returns a failure of the normalizer, after which the library would go on with
/// the text as far as it was normalized.
fn encode(tokenizer: &HubTokenizer, text: &str, specials: bool, offsets: OffsetType) -> tokenizers::Result<Encoding> {
    let normalizer = tokenizer.get_normalizer().map(NotedFailure::new);
    let mut pieces = tokenizer.get_added_vocabulary().extract_and_normalize(normalizer.as_ref(), text);
    normalizer.map_or(Ok(()), NotedFailure::result)?;
    if let Some(pre_tokenizer) = tokenizer.get_pre_tokenizer() {
        pre_tokenizer.pre_tokenize(&mut pieces)?;
    }
    tokenizer.get_model().tokenize_in_pretokenized(&mut pieces, None)?;
    tokenizer.post_process(pieces.into_encoding(None, 0, offsets)?, None, specials)
}
