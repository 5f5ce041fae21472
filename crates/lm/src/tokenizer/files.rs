//! Selects the files that define a model's tokenizer.

use super::byte_level::{TokenizerFiles, from_vocab_and_merges};
use super::encode::Tokenizer;
use super::error::TokenizerError;
use std::ops::Deref;

const JSON: &str = "tokenizer.json";
const VOCAB: &str = "vocab.json";
const MERGES: &str = "merges.txt";

/// SentencePiece models, which only a C++ tokenizer can read.
const SENTENCE_PIECE: [&str; 3] = ["tokenizer.model", "spiece.model", "sentencepiece.bpe.model"];

/// A tokenizer, and the names and contents of the files that define it.
pub type FromFiles<B> = (Tokenizer, Vec<(&'static str, B)>);

/// Creates the tokenizer from `tokenizer.json`, otherwise from `vocab.json` and `merges.txt`. `find` returns the
/// content of a file, or `None` if it does not exist.
pub fn from_files<B, E>(find: impl Fn(&'static str) -> Result<Option<B>, E>) -> Result<FromFiles<B>, E>
where
    B: Deref<Target = [u8]>,
    E: From<TokenizerError>,
{
    if let Some(json) = find(JSON)? {
        let read = Tokenizer::from_json(&json);
        let tokenizer = read.map_err(|TokenizerError(fault)| TokenizerError(format!("{JSON}: {fault}")))?;
        return Ok((tokenizer, vec![(JSON, json)]));
    }
    match (find(VOCAB)?, find(MERGES)?) {
        (Some(vocab), Some(merges)) => byte_level(vocab, merges, find),
        (Some(_), None) => {
            Err(TokenizerError(format!("{VOCAB} is present, but {MERGES} and {JSON} are missing")).into())
        }
        (None, Some(_)) => {
            Err(TokenizerError(format!("{MERGES} is present, but {VOCAB} and {JSON} are missing")).into())
        }
        (None, None) => Err(missing(find)?.into()),
    }
}

fn byte_level<B, E>(vocab: B, merges: B, find: impl Fn(&'static str) -> Result<Option<B>, E>) -> Result<FromFiles<B>, E>
where
    B: Deref<Target = [u8]>,
    E: From<TokenizerError>,
{
    const CONFIG: &str = "tokenizer_config.json";
    const MAP: &str = "special_tokens_map.json";
    const ADDED: &str = "added_tokens.json";
    let (config, map, added) = (find(CONFIG)?, find(MAP)?, find(ADDED)?);
    let tokenizer = from_vocab_and_merges(TokenizerFiles {
        vocab: &vocab,
        merges: &merges,
        config: config.as_deref(),
        special_tokens_map: map.as_deref(),
        added_tokens: added.as_deref(),
    })?;
    let optional = [(CONFIG, config), (MAP, map), (ADDED, added)];
    let present = optional.into_iter().filter_map(|(name, content)| Some((name, content?)));
    Ok((tokenizer, [(VOCAB, vocab), (MERGES, merges)].into_iter().chain(present).collect()))
}

/// The error if no file can be used.
fn missing<B, E>(find: impl Fn(&'static str) -> Result<Option<B>, E>) -> Result<TokenizerError, E> {
    for name in SENTENCE_PIECE {
        if find(name)?.is_some() {
            return Ok(TokenizerError(format!(
                "only {name}, a SentencePiece model, is present; transformers can write the required {JSON}: \
                 AutoTokenizer.from_pretrained(DIRECTORY).save_pretrained(DIRECTORY)"
            )));
        }
    }
    Ok(TokenizerError(format!("{JSON} is missing, and so are {VOCAB} and {MERGES}")))
}
