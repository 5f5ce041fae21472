//! Why a model could not be fetched.

use std::path::PathBuf;

/// Why a model could not be fetched. None of them holds the token or an address that a server redirected to, which can
/// carry a signature.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// A variable of the environment cannot be used.
    #[error("the environment variable {variable} {problem}")]
    Environment {
        /// Its name.
        variable: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The Hub has no such repository or revision, or does not show it.
    #[error("the Hub shows no model `{repo}` at revision `{revision}`; if it is private, set HF_TOKEN")]
    NotFound {
        /// The repository.
        repo: String,
        /// The branch, tag or commit.
        revision: String,
    },
    /// The repository's licence has to be accepted first.
    #[error("the model `{repo}` is gated: accept its licence on its page and set HF_TOKEN to a token of that account")]
    Gated {
        /// The repository.
        repo: String,
    },
    /// The token is refused, or one is wanted.
    #[error("the Hub refuses access to the model `{repo}`: {reason}; check HF_TOKEN")]
    Unauthorized {
        /// The repository.
        repo: String,
        /// What the Hub said.
        reason: String,
    },
    /// The network must not be used and the cache does not suffice.
    #[error("the model `{repo}` at revision `{revision}` is not whole in the cache, and HF_HUB_OFFLINE is set")]
    Offline {
        /// The repository.
        repo: String,
        /// The branch, tag or commit.
        revision: String,
    },
    /// The repository is not a model that can be read.
    #[error("the model `{repo}` has no {missing}")]
    NoSuchFiles {
        /// The repository.
        repo: String,
        /// What is missing, in words.
        missing: String,
    },
    /// A file arrived whole, and is not what the Hub lists. It was deleted.
    #[error("the file `{file}` arrived with the digest {found} and not {expected}; it was deleted")]
    Digest {
        /// The name of the file in the repository.
        file: String,
        /// The listed digest, as `sha256:<hex>` or `git-sha1:<hex>`.
        expected: String,
        /// The digest of what arrived.
        found: String,
    },
    /// The cache cannot be written or read: no space, no permission.
    #[error("{}: {reason}", path.display())]
    Disk {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The network or the server failed in a way that may pass, and did so at every attempt.
    #[error("{url}: {reason}")]
    Network {
        /// What was asked for.
        url: String,
        /// What happened last.
        reason: String,
    },
    /// The server's answer makes no sense.
    #[error("{url}: {reason}")]
    Protocol {
        /// What was asked for.
        url: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// [`Progress::cancel`](super::Progress::cancel) was called.
    #[error("the download was cancelled")]
    Cancelled,
}

impl HubError {
    /// What the system says about a path of the cache.
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
