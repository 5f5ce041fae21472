//! Errors of downloading.

use super::RepoKind;
use std::path::PathBuf;

/// An error of downloading a model or a dataset. None contains the token, or an address that a server redirected to, which can contain a
/// signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// An environment variable has an invalid value.
    #[error("the environment variable {variable} {problem}")]
    Environment {
        variable: &'static str,
        /// The problem, as the rest of a sentence.
        problem: String,
    },
    /// The Hub has no such repository or revision, or it is private.
    #[error("the Hub has no {kind} `{repo}` at revision `{revision}`; if it is private, set HF_TOKEN")]
    NotFound { kind: RepoKind, repo: String, revision: String },
    /// The licence of the repository must be accepted first.
    #[error(
        "the {kind} `{repo}` is gated: accept its licence on its page on the Hub and set HF_TOKEN to a token of that account"
    )]
    Gated { kind: RepoKind, repo: String },
    /// The Hub rejects the token, or requires one.
    #[error("the Hub refuses access to the {kind} `{repo}`: {reason}; check HF_TOKEN")]
    Unauthorized { kind: RepoKind, repo: String, reason: String },
    /// The network is disabled and the cache does not contain all that is needed.
    #[error("the {kind} `{repo}` at revision `{revision}` is not completely in the cache, and HF_HUB_OFFLINE is set")]
    Offline { kind: RepoKind, repo: String, revision: String },
    /// The repository lacks files that are needed.
    #[error("the {kind} `{repo}` has no {missing}")]
    NoSuchFiles { kind: RepoKind, repo: String, missing: String },
    /// A complete file does not have the digest that the Hub lists. It was deleted.
    #[error("the downloaded file `{file}` has the digest {actual}, but the Hub lists {expected}; it was deleted")]
    Digest {
        file: String,
        /// The listed digest, as `sha256:<hex>` or `git-sha1:<hex>`.
        expected: String,
        actual: String,
    },
    /// The cache cannot be written or read, for example for lack of space or permission.
    #[error("{}: {reason}", path.display())]
    Disk { path: PathBuf, reason: String },
    /// The network or the server failed in a way that may be temporary, at every attempt.
    #[error("{url}: {reason}")]
    Network { url: String, reason: String },
    /// The server's response is invalid.
    #[error("{url}: {reason}")]
    Protocol { url: String, reason: String },
    /// [`DownloadProgress::cancel`](super::DownloadProgress::cancel) was called.
    #[error("the download was cancelled")]
    Cancelled,
}

impl HubError {
    /// An error of the operating system for a path of the cache.
    pub(super) fn disk(path: &std::path::Path, reason: impl ToString) -> Self {
        Self::Disk { path: path.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn network(url: &str, reason: impl ToString) -> Self {
        Self::Network { url: url.to_owned(), reason: reason.to_string() }
    }

    pub(super) fn protocol(url: &str, reason: impl ToString) -> Self {
        Self::Protocol { url: url.to_owned(), reason: reason.to_string() }
    }
}
