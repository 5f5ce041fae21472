//! Selection of the files of a repository that a model needs.

use super::names::is_file_name;
use std::collections::BTreeSet;

/// The configuration of a model, which every model needs.
pub const CONFIG: &str = "config.json";

/// The files of a tokenizer; all of them that a repository has are needed.
const TOKENIZER: [&str; 8] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "tokenizer.model",
    "spiece.model",
];

/// The files that contain a vocabulary; a tokenizer needs one of them.
const VOCABULARIES: [&str; 4] = ["tokenizer.json", "vocab.json", "tokenizer.model", "spiece.model"];

/// The forms of weights in order of preference: one file, or an index of shards with the suffix of the shards' names.
const WEIGHTS: [(&str, Option<&str>); 4] = [
    ("model.safetensors", None),
    ("model.safetensors.index.json", Some(".safetensors")),
    ("pytorch_model.bin", None),
    ("pytorch_model.bin.index.json", Some(".bin")),
];

/// Why the files of a model could not be selected.
#[derive(Debug, PartialEq, Eq)]
pub enum SelectionError<E> {
    /// A description of what is missing.
    Missing(String),
    /// An index is invalid: its name and the reason.
    InvalidIndex(&'static str, String),
    /// An index cannot be read.
    Unreadable(E),
}

/// The names of the files that the model needs, the weights last. `has` tells whether a file exists, and `read` returns the
/// content of an index.
pub fn select<E>(
    has: impl Fn(&str) -> bool,
    read: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Vec<String>, SelectionError<E>> {
    if !has(CONFIG) {
        return Err(SelectionError::Missing(format!("`{CONFIG}`")));
    }
    let weights = weights(&has, read)?;
    Ok(std::iter::once(CONFIG.to_owned()).chain(tokenizer(has)).chain(weights).collect())
}

/// The names of the files of the tokenizer.
pub fn tokenizer(has: impl Fn(&str) -> bool) -> Vec<String> {
    TOKENIZER.into_iter().filter(|name| has(name)).map(str::to_owned).collect()
}

/// Returns true if one of the files contains a vocabulary.
pub fn has_vocabulary(names: &[String]) -> bool {
    names.iter().any(|name| VOCABULARIES.contains(&name.as_str()))
}

/// The files of the first form of weights that is complete.
fn weights<E>(
    has: impl Fn(&str) -> bool,
    mut read: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Vec<String>, SelectionError<E>> {
    let mut missing = format!("weights: none of {}", WEIGHTS.map(|(name, _)| name).join(", "));
    for (name, shard_suffix) in WEIGHTS.into_iter().filter(|(name, _)| has(name)) {
        let Some(suffix) = shard_suffix else { return Ok(vec![name.to_owned()]) };
        let index = read(name).map_err(SelectionError::Unreadable)?;
        let shards = shards(&index, suffix).map_err(|reason| SelectionError::InvalidIndex(name, reason))?;
        match shards.iter().find(|shard| !has(shard)) {
            None => return Ok(std::iter::once(name.to_owned()).chain(shards).collect()),
            Some(absent) => missing = format!("`{absent}`, which `{name}` lists"),
        }
    }
    Err(SelectionError::Missing(missing))
}

/// The shards that an index lists.
fn shards(index: &[u8], suffix: &str) -> Result<BTreeSet<String>, String> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let index: Index = serde_json::from_slice(index).map_err(|e| format!("not an index of shards: {e}"))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    match names.iter().find(|name| !is_file_name(name) || !name.ends_with(suffix)) {
        Some(name) => Err(format!("not a valid name of a shard: {name:?}")),
        None if names.is_empty() => Err("the index lists no shards".to_owned()),
        None => Ok(names),
    }
}
