//! Downloads models and datasets from the Hugging Face Hub into the cache that all tools of the Hub share.
//!
//! Invariants:
//!
//! - a file gets its name in the cache only when it is complete and has the digest that the Hub lists: SHA-256 for large files,
//!   git's SHA-1 for small ones; until then it is a `.part`, which the next download continues;
//! - a snapshot is linked, the weights last, when all its files are in the cache; the reference to it is written after that;
//! - every name from a server is checked to be a plain file name, or for a dataset a path without a way out, and every digest to
//!   be hexadecimal, before it becomes part of a path;
//! - the token is sent to the host of the endpoint and to no other.
//!
//! The crate hf-hub is not used: its downloads verify no digest, append to a partial file whatever a server sends, have no
//! timeouts, no cancellation and no `HF_HUB_OFFLINE`, and send the token to any host that a file is redirected to.

mod cache;
mod client;
mod dataset_files;
mod download;
mod environment;
mod error;
mod listing;
mod names;
mod progress;
#[cfg(test)]
mod tests;
mod wanted;

pub use cache::HubSnapshot;
pub use client::RetryPolicy;
pub use dataset_files::DatasetSplit;
pub use error::HubError;
pub use names::{RepoFile, RepoId, RepoKind};
pub use progress::DownloadProgress;

use cache::CachedRepo;
use client::{HubClient, RepoRevision};
use download::Downloader;
use environment::Environment;
use listing::Listing;
use names::{is_commit, is_revision};
use progress::DownloadMeter;
use std::path::PathBuf;
use wanted::Wanted;

/// The branch that repositories have.
const MAIN: &str = "main";

/// The branch on which the Hub keeps its own conversion of a dataset to Parquet.
const CONVERTED: &str = "refs/convert/parquet";

/// The Hub and its local cache.
pub struct Hub {
    cache: PathBuf,
    client: HubClient,
    retry_policy: RetryPolicy,
    offline: bool,
}

impl Hub {
    /// Configures the Hub from environment variables: `HF_HOME` (else `huggingface` in `XDG_CACHE_HOME`, else in `~/.cache`), `HF_HUB_CACHE`
    /// (else `hub` in `HF_HOME`), `HF_ENDPOINT` (else `https://huggingface.co`), `HF_TOKEN` (else the file `token` in
    /// `HF_HOME`), `HF_HUB_OFFLINE` (`1`, `true`, `yes`, `on`). An empty value counts as unset. Proxies are taken
    /// from `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` of the process.
    pub fn from_environment(vars: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        Self::with_retry_policy(vars, RetryPolicy::default())
    }

    /// Like [`Hub::from_environment`], with other timeouts and retries.
    pub fn with_retry_policy(
        vars: impl Fn(&str) -> Option<String>,
        retry_policy: RetryPolicy,
    ) -> Result<Self, HubError> {
        let Environment { cache, endpoint, token, offline } = Environment::read(vars)?;
        Ok(Self { cache, client: HubClient::new(endpoint, token, &retry_policy), retry_policy, offline })
    }

    /// Returns the model of a repository at a branch, tag or full commit hash, after downloading those files that the model
    /// needs and the cache lacks. Blocks for as long as bytes arrive.
    ///
    /// The cache is used without a request when offline and for a full commit hash, and with a warning when the Hub cannot be
    /// reached.
    ///
    /// # Errors
    /// Any [`HubError`]. Received bytes stay in the cache, except those of a file whose digest is not the listed one.
    pub fn fetch(&self, repo: &RepoId, revision: &str, progress: &DownloadProgress) -> Result<HubSnapshot, HubError> {
        Ok(self.fetch_files(Wanted::Model, repo, revision, progress)?.0)
    }

    /// As [`Hub::fetch`], but of the tokenizer alone.
    pub fn fetch_tokenizer(
        &self,
        repo: &RepoId,
        revision: &str,
        progress: &DownloadProgress,
    ) -> Result<HubSnapshot, HubError> {
        Ok(self.fetch_files(Wanted::Tokenizer, repo, revision, progress)?.0)
    }

    /// Fetches one file of a repository, as [`Hub::fetch`] fetches a model.
    pub fn fetch_file(
        &self,
        repo: &RepoId,
        name: &str,
        revision: &str,
        progress: &DownloadProgress,
    ) -> Result<HubSnapshot, HubError> {
        Ok(self.fetch_files(Wanted::File(name), repo, revision, progress)?.0)
    }

    /// Returns the Parquet files of a split of a dataset at a branch, tag or full commit hash, in the order of its rows, after
    /// downloading those that the cache lacks. Without a revision this is `main`, or, where that has no Parquet files of the
    /// split, the Hub's own conversion. The cache is used as by [`Hub::fetch`].
    pub fn fetch_split(
        &self,
        split: &DatasetSplit,
        revision: Option<&str>,
        progress: &DownloadProgress,
    ) -> Result<Vec<PathBuf>, HubError> {
        let fetch = |revision| self.fetch_files(Wanted::Split(split), &split.repo, revision, progress);
        let fetched = match (fetch(revision.unwrap_or(MAIN)), revision) {
            (
                Err(error @ (HubError::NoSuchFiles { .. } | HubError::Offline { .. } | HubError::Network { .. })),
                None,
            ) => match fetch(CONVERTED) {
                // There is no conversion.
                Err(HubError::NotFound { .. } | HubError::Offline { .. } | HubError::Network { .. }) => Err(error),
                fetched => fetched,
            },
            (fetched, _) => fetched,
        };
        let (snapshot, names) = fetched?;
        Ok(names.iter().map(|name| snapshot.directory.join(name)).collect())
    }

    /// The snapshot of a revision and the names of what is wanted of it.
    fn fetch_files(
        &self,
        wanted: Wanted<'_>,
        repo: &RepoId,
        revision: &str,
        progress: &DownloadProgress,
    ) -> Result<(HubSnapshot, Vec<String>), HubError> {
        let kind = wanted.kind();
        let (cached, target) = (CachedRepo::new(&self.cache, kind, repo), RepoRevision { kind, repo, revision });
        let in_cache = || {
            let snapshot = cached.find(revision)?;
            let names = wanted.in_snapshot(&snapshot.directory)?;
            Some((snapshot, names))
        };
        if !is_revision(revision) {
            return Err(HubError::NotFound { kind, repo: repo.to_string(), revision: revision.to_owned() });
        }
        if self.offline || is_commit(revision) {
            match in_cache() {
                Some(files) => return Ok(files),
                None if self.offline => {
                    return Err(HubError::Offline { kind, repo: repo.to_string(), revision: revision.to_owned() });
                }
                None => {}
            }
        }
        match self.listing(target, progress) {
            Ok(listing) => self.download(wanted, target, &cached, &listing, progress),
            Err(error @ HubError::Network { .. }) => match in_cache() {
                Some((snapshot, names)) => {
                    let commit = &snapshot.commit;
                    tracing::warn!(%repo, revision, commit, %error, "the Hub cannot be reached; using the {kind} from the cache");
                    Ok((snapshot, names))
                }
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn listing(&self, target: RepoRevision<'_>, progress: &DownloadProgress) -> Result<Listing, HubError> {
        let json = self.retry_policy.retry(progress, || self.client.listing(target))?;
        let listing = Listing::parse(&json, target.kind).and_then(|listing| match is_commit(target.revision) {
            true if listing.commit != target.revision => {
                Err(format!("the response is for the commit {}", listing.commit))
            }
            _ => Ok(listing),
        });
        listing.map_err(|reason| HubError::protocol(&self.client.listing_url(target), reason))
    }

    fn download(
        &self,
        wanted: Wanted<'_>,
        target: RepoRevision<'_>,
        cached: &CachedRepo,
        listing: &Listing,
        progress: &DownloadProgress,
    ) -> Result<(HubSnapshot, Vec<String>), HubError> {
        let commit = &listing.commit;
        let downloader = Downloader { client: &self.client, retry_policy: &self.retry_policy, cached, target, commit };
        let mut meter = DownloadMeter::new(progress, target.repo);
        let files = wanted.in_listing(&downloader, listing, &mut meter)?;
        let total = files.iter().map(|file| file.size).fold(0, u64::saturating_add);
        let missing = files.iter().filter(|file| !cached.has(file)).count();
        if missing > 0 {
            tracing::info!(repo = %target.repo, commit, files = missing, total_bytes = total, "download starts");
        }
        meter.begin(total);
        for file in &files {
            downloader.ensure(file, &mut meter)?;
        }
        let snapshot = cached.publish(listing, &files, target.revision)?;
        if missing > 0 {
            tracing::info!(repo = %target.repo, commit, total_bytes = total, "download is complete");
        }
        Ok((snapshot, files.iter().map(|file| file.name.clone()).collect()))
    }
}
