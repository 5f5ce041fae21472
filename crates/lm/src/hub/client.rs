//! Requests to the Hub.

use super::progress::DownloadProgress;
use super::{HubError, RepoId, RepoKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use ureq::config::RedirectAuthHeaders;
use ureq::http::Response;
use ureq::{Agent, Body};

/// The characters of a revision, or of a part of a file's path, that are not percent-encoded in a URL.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The maximum size of a list of files, in bytes. The largest known lists have a few megabytes.
const MAX_LISTING_BYTES: u64 = 64 << 20;

/// Timeouts and retries of requests. There is no limit on the duration of a download that makes progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts of a request; a request is made at least once.
    pub attempts: u32,
    /// The pause after the first failed attempt; it doubles after each further one.
    pub backoff: Duration,
    /// The timeout for resolving a host name, and then for connecting.
    pub connect: Duration,
    /// The timeout for a connection on which no bytes arrive.
    pub idle: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            backoff: Duration::from_millis(500),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        }
    }
}

impl RetryPolicy {
    /// Repeats `attempt` while it fails with [`HubError::Network`] and attempts are left.
    pub fn retry<T>(
        &self,
        progress: &DownloadProgress,
        mut attempt: impl FnMut() -> Result<T, HubError>,
    ) -> Result<T, HubError> {
        let mut pause = self.backoff;
        for _ in 1..self.attempts {
            match attempt() {
                Err(error @ HubError::Network { .. }) => {
                    tracing::warn!(%error, "trying again in {pause:.1?}");
                    progress.pause(pause)?;
                    pause = pause.saturating_mul(2);
                }
                result => return result,
            }
        }
        attempt()
    }
}

/// Sends requests to the Hub. The token is sent to the Hub only, not to another host that it redirects to.
pub struct HubClient {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
}

/// The repository and revision that a request is for.
#[derive(Clone, Copy)]
pub struct RepoRevision<'a> {
    pub kind: RepoKind,
    pub repo: &'a RepoId,
    pub revision: &'a str,
}

impl HubClient {
    pub fn new(endpoint: String, token: Option<String>, retry_policy: &RetryPolicy) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_resolve(Some(retry_policy.connect))
            .timeout_connect(Some(retry_policy.connect))
            .timeout_per_read(Some(retry_policy.idle))
            .timeout_per_write(Some(retry_policy.idle))
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity");
        Self { agent: config.build().into(), endpoint, token }
    }

    /// The Hub's list of the files of a revision, as JSON.
    pub fn listing(&self, target: RepoRevision<'_>) -> Result<Vec<u8>, HubError> {
        let mut response = self.get(&self.listing_url(target), None, target)?;
        let body = response.body_mut().with_config().limit(MAX_LISTING_BYTES).read_to_vec();
        body.map_err(|e| failure(&self.listing_url(target), &e))
    }

    pub fn listing_url(&self, RepoRevision { kind, repo, revision }: RepoRevision<'_>) -> String {
        let revision = utf8_percent_encode(revision, UNRESERVED);
        format!("{}/api/{}/{repo}/revision/{revision}?blobs=true", self.endpoint, kind.plural())
    }

    /// The address of a file at a commit.
    pub fn file_url(&self, RepoRevision { kind, repo, .. }: RepoRevision<'_>, commit: &str, name: &str) -> String {
        let parts: Vec<String> =
            name.split('/').map(|part| utf8_percent_encode(part, UNRESERVED).to_string()).collect();
        format!("{}/{}{repo}/resolve/{commit}/{}", self.endpoint, kind.path_prefix(), parts.join("/"))
    }

    /// Sends one request, for the bytes from `start` on if given. Every status other than success is an error.
    pub fn get(&self, url: &str, start: Option<u64>, target: RepoRevision<'_>) -> Result<Response<Body>, HubError> {
        let mut request = self.agent.get(url);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(start) = start {
            request = request.header("Range", format!("bytes={start}-"));
        }
        let response = request.call().map_err(|e| failure(url, &e))?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(url, &response, target)) }
    }
}

/// Divides errors into those of the network, which are retried, and those of the protocol, which are not.
fn failure(url: &str, error: &ureq::Error) -> HubError {
    use ureq::Error::{BodyStalled, ConnectProxyFailed, ConnectionFailed, HostNotFound, Io, Timeout};
    match error {
        Io(_) | Timeout(_) | HostNotFound | ConnectionFailed | ConnectProxyFailed(_) | BodyStalled => {
            HubError::network(url, error)
        }
        _ => HubError::protocol(url, error),
    }
}

/// The error for a status other than success. The header `X-Error-Code` distinguishes cases that share a status: the Hub
/// answers 401 both for repositories that do not exist and for private ones.
fn refusal(url: &str, response: &Response<Body>, RepoRevision { kind, repo, revision }: RepoRevision<'_>) -> HubError {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let status = response.status();
    let reason = header("x-error-message").map_or_else(|| status.to_string(), |message| format!("{status}: {message}"));
    let repo = repo.to_string();
    match (status.as_u16(), header("x-error-code")) {
        (401 | 403, Some("GatedRepo")) => HubError::Gated { kind, repo },
        (401 | 404, Some("RepoNotFound" | "RevisionNotFound")) => {
            HubError::NotFound { kind, repo, revision: revision.to_owned() }
        }
        (404, None) => HubError::NotFound { kind, repo, revision: revision.to_owned() },
        (401 | 403, _) => HubError::Unauthorized { kind, repo, reason },
        (408 | 429 | 500 | 502..=504, _) => HubError::network(url, reason),
        _ => HubError::protocol(url, reason),
    }
}
