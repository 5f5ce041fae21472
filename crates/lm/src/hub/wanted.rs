//! Which files of a repository are needed: those of a model, of its tokenizer alone, or of a split of a dataset.

use super::dataset_files::{self, DatasetSplit};
use super::download::Downloader;
use super::listing::{Listing, RemoteFile};
use super::model_files::{self, SelectionError};
use super::names::is_file_path;
use super::progress::DownloadMeter;
use super::{HubError, RepoKind};
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
    Split(&'a DatasetSplit),
}

impl Wanted<'_> {
    pub fn kind(self) -> RepoKind {
        match self {
            Self::Model | Self::Tokenizer => RepoKind::Model,
            Self::Split(_) => RepoKind::Dataset,
        }
    }

    /// Returns the names of the files in a snapshot in the cache; `None` if files are missing.
    pub fn in_snapshot(self, directory: &Path) -> Option<Vec<String>> {
        match self {
            Self::Model => {
                let has = |name: &str| directory.join(name).is_file();
                let files = model_files::select(has, |name| std::fs::read(directory.join(name))).ok()?;
                model_files::has_vocabulary(&files).then_some(files)
            }
            Self::Tokenizer => {
                let files = model_files::tokenizer(|name| directory.join(name).is_file());
                model_files::has_vocabulary(&files).then_some(files)
            }
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
                let names = model_files::tokenizer(|name| listing.files.contains_key(name));
                if !model_files::has_vocabulary(&names) {
                    return Err(missing(downloader, "a tokenizer".to_owned()));
                }
                names
            }
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
    model_files::select(|name| listing.files.contains_key(name), read).map_err(|error| match error {
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
