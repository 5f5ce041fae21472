//! Text to token ids, exactly as the model's own files say, special tokens included.

mod byte_level;
mod files;
mod fingerprint;
mod special;
mod words;

#[cfg(test)]
mod tests;

pub use byte_level::{TokenizerFiles, from_vocab_and_merges};
pub use files::from_files;
pub use words::Words;

use std::sync::{Arc, OnceLock};
use tokenizers::Tokenizer as HubTokenizer;

/// A tokenizer, cheap to clone and safe to share between threads.
#[derive(Clone)]
pub struct Tokenizer {
    inner: Arc<HubTokenizer>,
    fingerprint: Arc<OnceLock<Result<String, TokenizerError>>>,
}

/// One text as ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    pub ids: Arc<[u32]>,
    /// Start and end of each token in Unicode code points of the raw text, as the tokenizer gives them.
    pub offsets: Vec<(usize, usize)>,
    /// How many special tokens the tokenizer put before the text.
    pub specials_before: usize,
}

impl Encoded {
    /// Whether a special token stands before the text.
    pub fn bos_prepended(&self) -> bool {
        self.specials_before > 0
    }
}

/// Files of a tokenizer that cannot be used, or a text that it cannot encode.
#[derive(Debug, Clone, thiserror::Error)]
#[error("tokenizer: {0}")]
pub struct TokenizerError(String);

impl Tokenizer {
    /// Reads a `tokenizer.json`. Truncation and padding that it may ask for are switched off: no text is cut silently.
    ///
    /// # Errors
    /// Where the file is not one that the `tokenizers` library reads.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TokenizerError> {
        let mut inner = HubTokenizer::from_bytes(bytes).map_err(|e| TokenizerError(e.to_string()))?;
        inner.with_truncation(None).map_err(|e| TokenizerError(e.to_string()))?;
        inner.with_padding(None);
        Ok(Self { inner: Arc::new(inner), fingerprint: Arc::default() })
    }

    /// Encodes a text with the tokenizer's default special tokens.
    ///
    /// # Errors
    /// Where the tokenizer has no token for a part of the text.
    pub fn encode(&self, text: &str) -> Result<Encoded, TokenizerError> {
        let encoding = self.inner.encode_char_offsets(text, true).map_err(|e| TokenizerError(e.to_string()))?;
        Ok(Encoded {
            ids: encoding.get_ids().into(),
            offsets: encoding.get_offsets().to_vec(),
            specials_before: encoding.get_special_tokens_mask().iter().take_while(|special| **special == 1).count(),
        })
    }

    /// The ids of a text alone, without the special tokens that the tokenizer puts around one.
    ///
    /// # Errors
    /// As [`Tokenizer::encode`].
    pub fn plain_ids(&self, text: &str) -> Result<Vec<u32>, TokenizerError> {
        let encoding = self.inner.encode_fast(text, false).map_err(|e| TokenizerError(e.to_string()))?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of one token; U+FFFD where its bytes are not valid UTF-8 alone.
    pub fn piece(&self, id: u32) -> String {
        self.inner.decode(&[id], false).unwrap_or_default()
    }

    /// One more than the largest id that the tokenizer can give.
    pub fn id_bound(&self) -> usize {
        self.inner.get_vocab(true).values().max().map_or(0, |&id| id as usize + 1)
    }
}
