//! Downloads models from the Hugging Face Hub into the cache that all tools of the Hub share.
//!
//! Invariants:
//!
//! - a file gets its name in the cache only when it is complete and has the digest that the Hub lists: SHA-256 for large files,
//!   git's SHA-1 for small ones; until then it is a `.part`, which the next download continues;
//! - a snapshot is linked, the weights last, when all its files are in the cache; the reference to it is written after that;
//! - every name from a server is checked to be a plain file name, and every digest to be hexadecimal, before it becomes part of
//!   a path;
//! - the token is sent to the host of the endpoint and to no other.
//!
//! The crate hf-hub is not used: its downloads verify no digest, append to a partial file whatever a server sends, have no
//! timeouts, no cancellation and no `HF_HUB_OFFLINE`, and send the token to any host that a file is redirected to.

mod cache;
mod client;
mod digest;
mod download;
mod environment;
mod error;
mod listing;
mod model_files;
mod names;
mod progress;
#[cfg(test)]
mod tests;

pub use cache::HubSnapshot;
pub use client::RetryPolicy;
pub use error::HubError;
pub use names::RepoId;
pub use progress::DownloadProgress;

use cache::CachedRepo;
use client::{HubClient, RepoRevision};
use download::Downloader;
use environment::Environment;
use listing::{Listing, RemoteFile};
use model_files::SelectionError;
use names::{is_commit, is_revision};
use progress::DownloadMeter;
use std::path::PathBuf;

/// The maximum size of an index of shards, in bytes. The largest known indices have a few megabytes.
const MAX_INDEX_BYTES: u64 = 64 << 20;

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
    ///
    /// # Errors
    /// [`HubError::Environment`] where no home directory is set or a value is invalid.
    pub fn from_environment(vars: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        Self::with_retry_policy(vars, RetryPolicy::default())
    }

    /// Like [`Hub::from_environment`], with other timeouts and retries.
    ///
    /// # Errors
    /// See [`Hub::from_environment`].
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
        let cached = CachedRepo::new(&self.cache, repo);
        if !is_revision(revision) {
            return Err(HubError::NotFound { repo: repo.to_string(), revision: revision.to_owned() });
        }
        if self.offline || is_commit(revision) {
            match cached.find(revision) {
                Some(snapshot) => return Ok(snapshot),
                None if self.offline => {
                    return Err(HubError::Offline { repo: repo.to_string(), revision: revision.to_owned() });
                }
                None => {}
            }
        }
        match self.listing(RepoRevision { repo, revision }, progress) {
            Ok(listing) => self.download(RepoRevision { repo, revision }, &cached, &listing, progress),
            Err(error @ HubError::Network { .. }) => match cached.find(revision) {
                Some(snapshot) => {
                    let commit = &snapshot.commit;
                    tracing::warn!(%repo, revision, commit, %error, "the Hub cannot be reached; using the model from the cache");
                    Ok(snapshot)
                }
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn listing(&self, target: RepoRevision<'_>, progress: &DownloadProgress) -> Result<Listing, HubError> {
        let json = self.retry_policy.retry(progress, || self.client.listing(target))?;
        let listing = Listing::parse(&json).and_then(|listing| match is_commit(target.revision) {
            true if listing.commit != target.revision => {
                Err(format!("the response is for the commit {}", listing.commit))
            }
            _ => Ok(listing),
        });
        listing.map_err(|reason| HubError::protocol(&self.client.listing_url(target), reason))
    }

    fn download(
        &self,
        target: RepoRevision<'_>,
        cached: &CachedRepo,
        listing: &Listing,
        progress: &DownloadProgress,
    ) -> Result<HubSnapshot, HubError> {
        let commit = &listing.commit;
        let downloader = Downloader { client: &self.client, retry_policy: &self.retry_policy, cached, target, commit };
        let mut meter = DownloadMeter::new(progress, target.repo);
        let files = required_files(&downloader, listing, &mut meter)?;
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
        Ok(snapshot)
    }
}

/// The listed files that the model needs. Downloads the index of shards to find out.
fn required_files<'a>(
    downloader: &Downloader<'_>,
    listing: &'a Listing,
    meter: &mut DownloadMeter<'_>,
) -> Result<Vec<&'a RemoteFile>, HubError> {
    let find = |name: &str| {
        listing.files.get(name).ok_or_else(|| HubError::NoSuchFiles {
            repo: downloader.target.repo.to_string(),
            missing: format!("`{name}`"),
        })
    };
    let read = |name: &str| {
        let file = find(name)?;
        if file.size > MAX_INDEX_BYTES {
            let url = downloader.client.file_url(downloader.target.repo, downloader.commit, name);
            return Err(HubError::protocol(
                &url,
                format!("the index has {} bytes, more than {MAX_INDEX_BYTES}", file.size),
            ));
        }
        downloader.ensure(file, meter)?;
        let blob = downloader.cached.blob(file);
        std::fs::read(&blob).map_err(|e| HubError::disk(&blob, e))
    };
    let names = model_files::select(|name| listing.files.contains_key(name), read).map_err(|error| match error {
        SelectionError::Missing(missing) => HubError::NoSuchFiles { repo: downloader.target.repo.to_string(), missing },
        SelectionError::InvalidIndex(name, reason) => {
            HubError::protocol(&downloader.client.file_url(downloader.target.repo, downloader.commit, name), reason)
        }
        SelectionError::Unreadable(error) => error,
    })?;
    names.iter().map(|name| find(name)).collect()
}
