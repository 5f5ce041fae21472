//! Which files of a repository are needed: those of a model, of its tokenizer alone, or of a split of a dataset.

use super::dataset_files::{self, DatasetSplit};
use super::download::Downloader;
use super::listing::{Listing, RemoteFile};
use super::names::{is_file_name, is_file_path};
use super::progress::DownloadMeter;
use super::{HubError, RepoKind};
use std::collections::BTreeSet;
use std::path::Path;

/// The maximum size of an index of shards, in bytes. The largest known indices have a few megabytes.
const MAX_INDEX_BYTES: u64 = 64 << 20;

/// Maximum depth at which the directories of a dataset are searched in the cache.
const MAX_DEPTH: usize = 8;

/// The required part of a repository.
#[derive(Clone, Copy)]
pub enum Wanted<'a> {
    Model,
    Tokenizer,
    /// One file of a model by its name.
    File(&'a str),
    Split(&'a DatasetSplit),
}

impl Wanted<'_> {
    pub fn kind(self) -> RepoKind {
        match self {
            Self::Model | Self::Tokenizer | Self::File(_) => RepoKind::Model,
            Self::Split(_) => RepoKind::Dataset,
        }
    }

    /// Returns the names of the files in a snapshot in the cache; `None` if files are missing.
    pub fn in_snapshot(self, directory: &Path) -> Option<Vec<String>> {
        match self {
            Self::Model => {
                let has = |name: &str| directory.join(name).is_file();
                let files = model_files(has, |name| std::fs::read(directory.join(name))).ok()?;
                has_vocabulary(&files).then_some(files)
            }
            Self::Tokenizer => {
                let files = tokenizer(|name| directory.join(name).is_file());
                has_vocabulary(&files).then_some(files)
            }
            Self::File(name) => directory.join(name).is_file().then(|| vec![name.to_owned()]),
            Self::Split(split) => {
                let mut paths = Vec::new();
                collect_files(directory, "", MAX_DEPTH, &mut paths);
                dataset_files::select(paths.iter().map(String::as_str), split).ok()
            }
        }
    }

    /// The files among those that the Hub lists. The index of a model's shards is downloaded to find out.
    pub fn in_listing<'l>(
        self,
        downloader: &Downloader<'_>,
        listing: &'l Listing,
        meter: &mut DownloadMeter<'_>,
    ) -> Result<Vec<&'l RemoteFile>, HubError> {
        let find = |name: &str| listing.files.get(name).ok_or_else(|| missing(downloader, format!("`{name}`")));
        let names = match self {
            Self::Model => model_names(downloader, listing, meter)?,
            Self::Tokenizer => {
                let names = tokenizer(|name| listing.files.contains_key(name));
                if !has_vocabulary(&names) {
                    return Err(missing(downloader, "a tokenizer".to_owned()));
                }
                names
            }
            Self::File(name) => vec![name.to_owned()],
            Self::Split(split) => {
                let paths = listing.files.keys().map(String::as_str);
                dataset_files::select(paths, split).map_err(|lacking| missing(downloader, lacking))?
            }
        };
        names.iter().map(|name| find(name)).collect()
    }
}

/// The names of the files that a model needs.
fn model_names(
    downloader: &Downloader<'_>,
    listing: &Listing,
    meter: &mut DownloadMeter<'_>,
) -> Result<Vec<String>, HubError> {
    let url = |name: &str| downloader.client.file_url(downloader.target, downloader.commit, name);
    let read = |name: &str| {
        let file = listing.files.get(name).ok_or_else(|| missing(downloader, format!("`{name}`")))?;
        if file.size > MAX_INDEX_BYTES {
            let reason = format!("the index has {} bytes, more than {MAX_INDEX_BYTES}", file.size);
            return Err(HubError::protocol(&url(name), reason));
        }
        downloader.ensure(file, meter)?;
        let blob = downloader.cached.blob(file);
        std::fs::read(&blob).map_err(|e| HubError::disk(&blob, e))
    };
    model_files(|name| listing.files.contains_key(name), read).map_err(|error| match error {
        SelectionError::Missing(lacking) => missing(downloader, lacking),
        SelectionError::InvalidIndex(name, reason) => HubError::protocol(&url(name), reason),
        SelectionError::Unreadable(error) => error,
    })
}

fn missing(downloader: &Downloader<'_>, missing: String) -> HubError {
    HubError::NoSuchFiles { kind: downloader.target.kind, repo: downloader.target.repo.to_string(), missing }
}

/// Adds the paths of the files in a directory, relative to the snapshot that it is in. What cannot be read is left out, as if
/// it were not in the cache.
fn collect_files(directory: &Path, prefix: &str, depth: usize, paths: &mut Vec<String>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (Ok(name), path) = (entry.file_name().into_string(), entry.path()) else { continue };
        let relative = format!("{prefix}{name}");
        if path.is_dir() && depth > 0 {
            collect_files(&path, &format!("{relative}/"), depth - 1, paths);
        } else if path.is_file() && is_file_path(&relative) {
            paths.push(relative);
        }
    }
}

/// The configuration of a model, which every model needs.
pub const CONFIG: &str = "config.json";

/// The settings of generation, which tell what ends a text; a model may lack them.
const GENERATION: &str = "generation_config.json";

/// The files of a tokenizer; all of them that a repository has are needed.
const TOKENIZER: [&str; 9] = [
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
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
pub fn model_files<E>(
    has: impl Fn(&str) -> bool,
    read: impl FnMut(&str) -> Result<Vec<u8>, E>,
) -> Result<Vec<String>, SelectionError<E>> {
    if !has(CONFIG) {
        return Err(SelectionError::Missing(format!("`{CONFIG}`")));
    }
    let weights = weights(&has, read)?;
    let generation = has(GENERATION).then(|| GENERATION.to_owned());
    Ok(std::iter::once(CONFIG.to_owned()).chain(generation).chain(tokenizer(has)).chain(weights).collect())
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
