//! Selects the files that define a model's tokenizer.

use super::TokenizerError;
use super::encode::Tokenizer;
use super::special::{AddedToken, Special, object};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::ops::Deref;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;

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

/// The names of this tokenizer in transformers.
const CLASSES: [&str; 2] = ["GPT2Tokenizer", "GPT2TokenizerFast"];

/// Settings that change ids and that this tokenizer does not support; absent or false, they have no effect.
const NOT_SUPPORTED: [&str; 3] = ["add_eos_token", "do_lower_case", "split_special_tokens"];

/// The contents of a byte-level tokenizer's files.
#[derive(Clone, Copy, Debug)]
pub struct TokenizerFiles<'a> {
    /// `vocab.json`: tokens with their ids.
    pub vocab: &'a [u8],
    /// `merges.txt`: pairs of tokens, in the order in which they are merged.
    pub merges: &'a [u8],
    /// `tokenizer_config.json`.
    pub config: Option<&'a [u8]>,
    /// `special_tokens_map.json`.
    pub special_tokens_map: Option<&'a [u8]>,
    /// `added_tokens.json`: tokens with their ids.
    pub added_tokens: Option<&'a [u8]>,
}

/// Builds the tokenizer.
pub fn from_vocab_and_merges(files: TokenizerFiles<'_>) -> Result<Tokenizer, TokenizerError> {
    let vocab = vocabulary(files.vocab)?;
    let merges = merges(files.merges, &vocab)?;
    let config = object("tokenizer_config.json", files.config)?;
    check_config(&config)?;
    let special = Special::read(&config, files.special_tokens_map, files.added_tokens)?;
    let added = with_ids(&special, &vocab)?;
    let pre_tokenizer = json!({
        "type": "ByteLevel", "add_prefix_space": flag(&config, "add_prefix_space")?, "trim_offsets": true, "use_regex": true,
    });
    let json = json!({
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": pre_tokenizer,
        "post_processor": post_processor(&config, &special, &added)?,
        "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
        "model": { "type": "BPE", "vocab": vocab, "merges": merges },
    });
    Tokenizer::from_json(json.to_string().as_bytes())
}

/// The ids of `vocab.json` by token: ids are unique, and every byte has a token, since text would be lost otherwise.
fn vocabulary(bytes: &[u8]) -> Result<HashMap<String, u32>, TokenizerError> {
    let error = |reason: String| TokenizerError(format!("vocab.json: {reason}"));
    let vocab: HashMap<String, u32> = serde_json::from_slice(bytes).map_err(|e| error(e.to_string()))?;
    let mut by_id = HashMap::with_capacity(vocab.len());
    for (token, id) in &vocab {
        if let Some(other) = by_id.insert(id, token) {
            let (first, second) = (token.min(other), token.max(other));
            return Err(error(format!("tokens {first:?} and {second:?} both have id {id}")));
        }
    }
    let mut alphabet: Vec<char> = ByteLevel::alphabet().into_iter().collect();
    alphabet.sort_unstable();
    match alphabet.iter().find(|byte| !vocab.contains_key(&byte.to_string())) {
        None => Ok(vocab),
        Some(byte) => {
            Err(error(format!("no token {byte:?}; a byte-level vocabulary needs one for each of the 256 bytes")))
        }
    }
}

/// The pairs of `merges.txt`. Both tokens and their concatenation must be in the vocabulary.
fn merges<'m>(bytes: &'m [u8], vocab: &HashMap<String, u32>) -> Result<Vec<(&'m str, &'m str)>, TokenizerError> {
    let error = |line: usize, reason: String| TokenizerError(format!("merges.txt, line {line}: {reason}"));
    let text = str::from_utf8(bytes).map_err(|e| TokenizerError(format!("merges.txt: {e}")))?;
    // transformers drops the first line whatever it is; without the version line, that would be a merge.
    if !text.starts_with("#version") {
        return Err(error(1, "does not begin with `#version`".into()));
    }
    let lines = text.lines().enumerate().skip(1).map(|(index, line)| (index + 1, line));
    lines
        .map(|(number, line)| {
            let (left, right) = line
                .split_once(' ')
                .filter(|(left, right)| !left.is_empty() && !right.is_empty() && !right.contains(' '))
                .ok_or_else(|| error(number, format!("{line:?} is not two tokens")))?;
            for token in [left.to_owned(), right.to_owned(), [left, right].concat()] {
                if !vocab.contains_key(&token) {
                    return Err(error(number, format!("{token:?} is not in vocab.json")));
                }
            }
            Ok((left, right))
        })
        .collect()
}

fn check_config(config: &Map<String, Value>) -> Result<(), TokenizerError> {
    match config.get("tokenizer_class") {
        None | Some(Value::Null) => {}
        Some(Value::String(class)) if CLASSES.contains(&class.as_str()) => {}
        Some(other) => {
            return Err(error(
                "tokenizer_class",
                format!("{other} is not supported; vocab.json and merges.txt are read as those of GPT2Tokenizer"),
            ));
        }
    }
    match NOT_SUPPORTED.iter().find(|key| !matches!(config.get(**key), None | Some(Value::Null | Value::Bool(false)))) {
        None => Ok(()),
        Some(key) => Err(error(key, "not supported, since it would change the ids".into())),
    }
}

/// A boolean that defaults to false.
fn flag(config: &Map<String, Value>, key: &str) -> Result<bool, TokenizerError> {
    match config.get(key) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(error(key, format!("expected true or false, found {other}"))),
    }
}

fn error(key: &str, reason: String) -> TokenizerError {
    TokenizerError(format!("tokenizer_config.json: key `{key}`: {reason}"))
}

/// An added token with its id, in the format of `tokenizer.json`.
#[derive(serde::Serialize)]
struct Numbered<'s> {
    id: u32,
    #[serde(flatten)]
    token: &'s AddedToken,
}

/// Added tokens that the vocabulary lacks get the next free ids, in their order.
fn with_ids<'s>(special: &'s Special, vocab: &HashMap<String, u32>) -> Result<Vec<Numbered<'s>>, TokenizerError> {
    let mut next = u32::try_from(vocab.len()).map_err(|e| TokenizerError(format!("vocab.json: {e}")))?;
    let largest = vocab.values().copied().max();
    let mut numbered = Vec::with_capacity(special.tokens.len());
    for (declared, token) in &special.tokens {
        let id = vocab.get(&token.content).copied().unwrap_or(next);
        if !vocab.contains_key(&token.content) {
            if largest >= Some(id) {
                let content = &token.content;
                return Err(TokenizerError(format!(
                    "vocab.json: ids have gaps, so there is no free id for the added token {content:?}"
                )));
            }
            next += 1;
        }
        if declared.is_some_and(|declared| declared != id) {
            let (content, declared) = (&token.content, declared.unwrap_or_default());
            return Err(TokenizerError(format!(
                "added token {content:?} has id {declared}, but the vocabulary gives it {id}"
            )));
        }
        numbered.push(Numbered { id, token });
    }
    Ok(numbered)
}

/// With `add_bos_token`, adds the token that begins every text; otherwise only sets offsets, as transformers does.
fn post_processor(
    config: &Map<String, Value>,
    special: &Special,
    added: &[Numbered<'_>],
) -> Result<Value, TokenizerError> {
    if !flag(config, "add_bos_token")? {
        return Ok(json!({ "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": false, "use_regex": true }));
    }
    let bos = added.iter().find(|numbered| Some(&numbered.token.content) == special.bos.as_ref());
    let Numbered { id, token } = bos.ok_or_else(|| error("add_bos_token", "there is no `bos_token` to add".into()))?;
    let bos = &token.content;
    let piece = json!({ "SpecialToken": { "id": bos, "type_id": 0 } });
    let text = |name: &str, type_id: u32| json!({ "Sequence": { "id": name, "type_id": type_id } });
    Ok(json!({
        "type": "TemplateProcessing",
        "single": [piece, text("A", 0)],
        "pair": [piece, text("A", 0), text("B", 1)],
        "special_tokens": { bos: { "id": bos, "ids": [id], "tokens": [bos] } },
    }))
}
