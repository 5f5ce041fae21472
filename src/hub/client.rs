//! Requests to the Hub.

use super::progress::Progress;
use super::{HubError, RepoId};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::time::Duration;
use ureq::config::RedirectAuthHeaders;
use ureq::http::Response;
use ureq::{Agent, Body};

/// What a revision may hold as it is in a URL.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The longest list of files that is read, in bytes. The longest known are of a few megabytes.
const LONGEST_LISTING: u64 = 64 << 20;

/// How long the network is given. Nothing bounds a download that keeps moving.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patience {
    /// How often a request is made, at least once.
    pub attempts: u32,
    /// The pause after the first failed attempt; it doubles with every further one.
    pub backoff: Duration,
    /// How long a name may take to resolve, and then a connection to be made.
    pub connect: Duration,
    /// How long nothing may arrive.
    pub idle: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 5,
            backoff: Duration::from_millis(500),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(30),
        }
    }
}

impl Patience {
    /// Tries until something else happens than [`HubError::Network`], or the attempts are used up.
    pub fn retry<T>(
        &self,
        progress: &Progress,
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
                settled => return settled,
            }
        }
        attempt()
    }
}

/// Asks the Hub, and only the Hub gets the token: a redirect to another host goes without.
pub struct Client {
    agent: Agent,
    endpoint: String,
    token: Option<String>,
}

/// What a request is about, for errors.
#[derive(Clone, Copy)]
pub struct About<'a> {
    pub repo: &'a RepoId,
    pub revision: &'a str,
}

impl Client {
    pub fn new(endpoint: String, token: Option<String>, patience: &Patience) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .timeout_resolve(Some(patience.connect))
            .timeout_connect(Some(patience.connect))
            .timeout_per_read(Some(patience.idle))
            .timeout_per_write(Some(patience.idle))
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity");
        Self { agent: config.build().into(), endpoint, token }
    }

    /// The Hub's list of the files of a revision, as it came.
    pub fn listing(&self, about: About<'_>) -> Result<Vec<u8>, HubError> {
        let mut response = self.get(&self.listing_url(about), None, about)?;
        let body = response.body_mut().with_config().limit(LONGEST_LISTING).read_to_vec();
        body.map_err(|e| failure(&self.listing_url(about), &e))
    }

    pub fn listing_url(&self, About { repo, revision }: About<'_>) -> String {
        let revision = utf8_percent_encode(revision, KEPT);
        format!("{}/api/models/{repo}/revision/{revision}?blobs=true", self.endpoint)
    }

    /// The address of a file at a commit.
    pub fn file_url(&self, repo: &RepoId, commit: &str, name: &str) -> String {
        format!("{}/{repo}/resolve/{commit}/{name}", self.endpoint)
    }

    /// One request, from byte `start` on where one is given; any answer but a success is an error.
    pub fn get(&self, url: &str, start: Option<u64>, about: About<'_>) -> Result<Response<Body>, HubError> {
        let mut request = self.agent.get(url);
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(start) = start {
            request = request.header("Range", format!("bytes={start}-"));
        }
        let response = request.call().map_err(|e| failure(url, &e))?;
        if response.status().is_success() { Ok(response) } else { Err(refusal(url, &response, about)) }
    }
}

/// Which errors may pass: those of the network.
fn failure(url: &str, error: &ureq::Error) -> HubError {
    use ureq::Error::{BodyStalled, ConnectProxyFailed, ConnectionFailed, HostNotFound, Io, Timeout};
    match error {
        Io(_) | Timeout(_) | HostNotFound | ConnectionFailed | ConnectProxyFailed(_) | BodyStalled => {
            HubError::network(url, error)
        }
        _ => HubError::protocol(url, error),
    }
}

/// What a status other than success means. The Hub says in `X-Error-Code` what a status leaves open; it answers 401 for
/// what does not exist, as for what is hidden.
fn refusal(url: &str, response: &Response<Body>, About { repo, revision }: About<'_>) -> HubError {
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let status = response.status();
    let reason = header("x-error-message").map_or_else(|| status.to_string(), |said| format!("{status}: {said}"));
    let repo = repo.to_string();
    match (status.as_u16(), header("x-error-code")) {
        (401 | 403, Some("GatedRepo")) => HubError::Gated { repo },
        (401 | 404, Some("RepoNotFound" | "RevisionNotFound")) => {
            HubError::NotFound { repo, revision: revision.to_owned() }
        }
        (404, None) => HubError::NotFound { repo, revision: revision.to_owned() },
        (401 | 403, _) => HubError::Unauthorized { repo, reason },
        (408 | 429 | 500 | 502..=504, _) => HubError::network(url, reason),
        _ => HubError::protocol(url, reason),
    }
}
