//! Which of a model's files tell of its tokenizer.

use super::{Tokenizer, TokenizerError, TokenizerFiles, from_vocab_and_merges};
use std::ops::Deref;

const JSON: &str = "tokenizer.json";
const VOCAB: &str = "vocab.json";
const MERGES: &str = "merges.txt";

/// SentencePiece models, which only a tokenizer of C++ reads.
const SENTENCE_PIECE: [&str; 3] = ["tokenizer.model", "spiece.model", "sentencepiece.bpe.model"];

/// A tokenizer, and the names and contents of the files that determine it.
pub type FromFiles<B> = (Tokenizer, Vec<(&'static str, B)>);

/// Makes the tokenizer from `tokenizer.json`, or else from `vocab.json` and `merges.txt`. `find` gives a file's content, or
/// `None` where there is no such file.
///
/// # Errors
/// What `find` fails with; [`TokenizerError`] where no file can be used, with the way out for a SentencePiece model.
pub fn from_files<B, E>(find: impl Fn(&'static str) -> Result<Option<B>, E>) -> Result<FromFiles<B>, E>
where
    B: Deref<Target = [u8]>,
    E: From<TokenizerError>,
{
    if let Some(json) = find(JSON)? {
        return Ok((Tokenizer::from_json(&json)?, vec![(JSON, json)]));
    }
    match (find(VOCAB)?, find(MERGES)?) {
        (Some(vocab), Some(merges)) => byte_level(vocab, merges, find),
        (Some(_), None) => Err(TokenizerError(format!("there is {VOCAB}, but no {MERGES} and no {JSON}")).into()),
        (None, Some(_)) => Err(TokenizerError(format!("there is {MERGES}, but no {VOCAB} and no {JSON}")).into()),
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

/// What to say where no file can be read.
fn missing<B, E>(find: impl Fn(&'static str) -> Result<Option<B>, E>) -> Result<TokenizerError, E> {
    for name in SENTENCE_PIECE {
        if find(name)?.is_some() {
            return Ok(TokenizerError(format!(
                "there is only {name}, a SentencePiece model; transformers writes the {JSON} that is needed: \
                 AutoTokenizer.from_pretrained(DIRECTORY).save_pretrained(DIRECTORY)"
            )));
        }
    }
    Ok(TokenizerError(format!("there is no {JSON}, and no {VOCAB} with {MERGES}")))
}
