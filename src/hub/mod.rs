//! Models from the Hugging Face Hub, into the cache that all of the Hub's tools share.
//!
//! Invariants:
//!
//! - a file gets its name in the cache only when it is whole and its digest is the one the Hub lists: SHA-256 for large
//!   files, git's SHA-1 for small ones; until then it is a `.part`, which the next download continues;
//! - a snapshot is linked, the weights last, when all its files are there; a reference to it is written after that;
//! - every name that comes from a server is a plain file name, and every digest is hexadecimal, before it is part of a
//!   path;
//! - the token goes to the endpoint's host and nowhere else.
//!
//! The layout of the cache and the token file are hf-hub's. Its downloads are not used: they verify no digest, append to
//! a partial file whatever a server sends, know no time limits, no cancelling and no `HF_HUB_OFFLINE`, and send the token
//! to whichever host a file is redirected to.

mod cache;
mod client;
mod digest;
mod download;
mod environment;
mod error;
mod listing;
mod names;
mod plan;
mod progress;
#[cfg(test)]
mod tests;

pub use client::Patience;
pub use error::HubError;
pub use names::RepoId;
pub use progress::Progress;

use cache::CachedRepo;
use client::{About, Client};
use download::Downloader;
use environment::Environment;
use listing::{Listing, RemoteFile};
use names::{is_commit, is_revision};
use plan::Lack;
use progress::Meter;
use std::path::PathBuf;

/// The largest index of shards that is read, in bytes. The largest known are of a few megabytes.
const LARGEST_INDEX: u64 = 64 << 20;

/// Where models are fetched from and kept.
pub struct Hub {
    cache: hf_hub::Cache,
    client: Client,
    patience: Patience,
    offline: bool,
}

/// A model in the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Where its files are.
    pub directory: PathBuf,
    /// The commit it is of, 40 hexadecimal digits.
    pub commit: String,
}

impl Hub {
    /// As the variables say: `HF_HOME` (else `huggingface` in `XDG_CACHE_HOME`, else in `~/.cache`), `HF_HUB_CACHE`
    /// (else `hub` in `HF_HOME`), `HF_ENDPOINT` (else `https://huggingface.co`), `HF_TOKEN` (else the file `token` in
    /// `HF_HOME`), `HF_HUB_OFFLINE` (`1`, `true`, `yes`, `on`). An empty value is none. Proxies are those of
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY` of the process.
    ///
    /// # Errors
    /// [`HubError::Environment`] where there is no home, or a value cannot be used.
    pub fn from_environment(vars: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        Self::with_patience(vars, Patience::default())
    }

    /// [`Hub::from_environment`] with other limits of time.
    ///
    /// # Errors
    /// As there.
    pub fn with_patience(vars: impl Fn(&str) -> Option<String>, patience: Patience) -> Result<Self, HubError> {
        let Environment { cache, endpoint, token, offline } = Environment::read(vars)?;
        Ok(Self { cache, client: Client::new(endpoint, token, &patience), patience, offline })
    }

    /// The model of a repository at a branch, tag or full commit hash: downloads what a model needs and the cache
    /// lacks. Blocks, for as long as bytes arrive.
    ///
    /// The cache is used as it is offline, for a full commit hash, and with a warning where the Hub cannot be reached.
    ///
    /// # Errors
    /// Any [`HubError`]. What has arrived stays in the cache, but for a file of another digest than listed.
    pub fn fetch(&self, repo: &RepoId, revision: &str, progress: &Progress) -> Result<Snapshot, HubError> {
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
        match self.listing(About { repo, revision }, progress) {
            Ok(listing) => self.download(About { repo, revision }, &cached, &listing, progress),
            Err(error @ HubError::Network { .. }) => match cached.find(revision) {
                Some(snapshot) => {
                    let commit = &snapshot.commit;
                    tracing::warn!(%repo, revision, commit, %error, "using the model as it is in the cache");
                    Ok(snapshot)
                }
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    fn listing(&self, about: About<'_>, progress: &Progress) -> Result<Listing, HubError> {
        let json = self.patience.retry(progress, || self.client.listing(about))?;
        let listing = Listing::parse(&json).and_then(|listing| match is_commit(about.revision) {
            true if listing.commit != about.revision => Err(format!("answered for the commit {}", listing.commit)),
            _ => Ok(listing),
        });
        listing.map_err(|reason| HubError::protocol(&self.client.listing_url(about), reason))
    }

    fn download(
        &self,
        about: About<'_>,
        cached: &CachedRepo,
        listing: &Listing,
        progress: &Progress,
    ) -> Result<Snapshot, HubError> {
        let commit = &listing.commit;
        let downloader = Downloader { client: &self.client, patience: &self.patience, cached, about, commit };
        let mut meter = Meter::new(progress, about.repo);
        let files = wanted(&downloader, listing, &mut meter)?;
        let total = files.iter().map(|file| file.size).fold(0, u64::saturating_add);
        let missing = files.iter().filter(|file| !cached.has(file)).count();
        if missing > 0 {
            tracing::info!(repo = %about.repo, commit, files = missing, total_bytes = total, "download starts");
        }
        meter.begin(total);
        for file in &files {
            downloader.ensure(file, &mut meter)?;
        }
        let snapshot = cached.publish(listing, &files, about.revision)?;
        if missing > 0 {
            tracing::info!(repo = %about.repo, commit, total_bytes = total, "download is complete");
        }
        Ok(snapshot)
    }
}

/// The listed files that make the model. An index of shards is downloaded for that.
fn wanted<'a>(
    downloader: &Downloader<'_>,
    listing: &'a Listing,
    meter: &mut Meter<'_>,
) -> Result<Vec<&'a RemoteFile>, HubError> {
    let find = |name: &str| {
        listing.files.get(name).ok_or_else(|| HubError::NoSuchFiles {
            repo: downloader.about.repo.to_string(),
            missing: format!("`{name}`"),
        })
    };
    let read = |name: &str| {
        let file = find(name)?;
        if file.size > LARGEST_INDEX {
            let url = downloader.client.file_url(downloader.about.repo, downloader.commit, name);
            return Err(HubError::protocol(&url, format!("an index of {} bytes", file.size)));
        }
        downloader.ensure(file, meter)?;
        let blob = downloader.cached.blob(file);
        std::fs::read(&blob).map_err(|e| HubError::disk(&blob, e))
    };
    let names = plan::files(|name| listing.files.contains_key(name), read).map_err(|lack| match lack {
        Lack::Missing(missing) => HubError::NoSuchFiles { repo: downloader.about.repo.to_string(), missing },
        Lack::BadIndex(name, reason) => {
            HubError::protocol(&downloader.client.file_url(downloader.about.repo, downloader.commit, name), reason)
        }
        Lack::Unreadable(error) => error,
    })?;
    names.iter().map(|name| find(name)).collect()
}
