//! Which files of a repository make a model.

use super::names::is_file_name;
use std::collections::BTreeSet;

/// The architecture of a model; without it there is none.
pub const CONFIG: &str = "config.json";

/// Everything a tokenizer may be made of; whatever a repository has of it is wanted.
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

/// The files of which each holds a vocabulary: without any of them there is no tokenizer.
const VOCABULARIES: [&str; 4] = ["tokenizer.json", "vocab.json", "tokenizer.model", "spiece.model"];

/// The forms of weights, the best first: the whole in one file, or an index of shards; and how the shards' names end.
const WEIGHTS: [(&str, Option<&str>); 4] = [
    ("model.safetensors", None),
    ("model.safetensors.index.json", Some(".safetensors")),
    ("pytorch_model.bin", None),
    ("pytorch_model.bin.index.json", Some(".bin")),
];

/// Why there is no model in a set of files.
#[derive(Debug, PartialEq, Eq)]
pub enum Lack<E> {
    /// What is missing, in words.
    Missing(String),
    /// An index that is none: its name and what is wrong.
    BadIndex(&'static str, String),
    /// An index could not be read.
    Unreadable(E),
}

/// The names of the files that make the model, the weights last. `has` tells whether there is a file of a name, `read`
/// gives the content of an index.
pub fn files<E>(
    has: impl Fn(&str) -> bool,
    read: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Vec<String>, Lack<E>> {
    if !has(CONFIG) {
        return Err(Lack::Missing(format!("`{CONFIG}`")));
    }
    let small = std::iter::once(CONFIG).chain(TOKENIZER).filter(|name| has(name)).map(str::to_owned);
    let weights = weights(&has, read)?;
    Ok(small.chain(weights).collect())
}

/// Whether one of the files holds a vocabulary.
pub fn has_vocabulary(names: &[String]) -> bool {
    names.iter().any(|name| VOCABULARIES.contains(&name.as_str()))
}

/// The weights in the first form that is complete.
fn weights<E>(
    has: impl Fn(&str) -> bool,
    mut read: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Vec<String>, Lack<E>> {
    let mut missing = format!("weights: none of {}", WEIGHTS.map(|(name, _)| name).join(", "));
    for (name, shard_suffix) in WEIGHTS.into_iter().filter(|(name, _)| has(name)) {
        let Some(suffix) = shard_suffix else { return Ok(vec![name.to_owned()]) };
        let index = read(name).map_err(Lack::Unreadable)?;
        let shards = shards(&index, suffix).map_err(|reason| Lack::BadIndex(name, reason))?;
        match shards.iter().find(|shard| !has(shard)) {
            None => return Ok(std::iter::once(name.to_owned()).chain(shards).collect()),
            Some(absent) => missing = format!("`{absent}`, which `{name}` names"),
        }
    }
    Err(Lack::Missing(missing))
}

/// The files that an index names.
fn shards(index: &[u8], suffix: &str) -> Result<BTreeSet<String>, String> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let index: Index = serde_json::from_slice(index).map_err(|e| format!("not an index of shards: {e}"))?;
    let names: BTreeSet<String> = index.weight_map.into_values().collect();
    match names.iter().find(|name| !is_file_name(name) || !name.ends_with(suffix)) {
        Some(name) => Err(format!("not the name of a shard: {name:?}")),
        None if names.is_empty() => Err("an index without shards".to_owned()),
        None => Ok(names),
    }
}
