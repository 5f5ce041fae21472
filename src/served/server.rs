//! Requests to a server that runs a model.

use crate::models::ModelError;
use serde::Deserialize;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body};

/// How long resolving a name may take, and then connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// Servers close connections that are idle for long, and a request on one that is about to close fails.
const MOST_IDLE: Duration = Duration::from_secs(5);
/// The most bytes that are read of an answer that is no success.
const MAX_PROBLEM_BYTES: u64 = 64 << 10;
/// The most characters that are quoted of it.
const MAX_QUOTED: usize = 300;

/// A server at a URL.
pub struct ModelServer {
    agent: Agent,
    url: String,
    /// The value of the header `authorization`.
    authorization: Option<String>,
}

/// What servers say in an answer that is no success: `application/problem+json`, or an object as OpenAI's servers write it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    detail: Option<String>,
    error: SaidError,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SaidError {
    message: Option<String>,
}

impl ModelServer {
    /// A server, of which nothing is asked yet. A request may take as long as `timeout`.
    pub fn new(url: &str, key: Option<&str>, timeout: Duration) -> Self {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(timeout))
            .timeout_resolve(Some(CONNECT.min(timeout)))
            .timeout_connect(Some(CONNECT.min(timeout)))
            .max_idle_age(MOST_IDLE)
            .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
            .accept_encoding("identity");
        Self {
            agent: config.build().into(),
            url: url.trim_end_matches('/').to_owned(),
            authorization: key.map(|key| format!("Bearer {key}")),
        }
    }

    /// Asks for what is at a path, of which at most `limit` bytes are read.
    ///
    /// # Errors
    /// As the documentation of the module says.
    pub fn get(&self, path: &str, limit: u64) -> Result<Vec<u8>, ModelError> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        body(request.call(), limit)
    }

    /// Posts JSON, and gives the answer of the wanted type, of which at most `limit` bytes are read.
    ///
    /// # Errors
    /// As the documentation of the module says.
    pub fn post(&self, path: &str, json: &[u8], accept: &str, limit: u64) -> Result<Vec<u8>, ModelError> {
        let request = self.agent.post(format!("{}{path}", self.url));
        let mut request = request.header("content-type", "application/json").header("accept", accept);
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        body(request.send(json), limit)
    }
}

/// The server gave no answer that counts.
pub fn unavailable(reason: impl Into<String>) -> ModelError {
    ModelError::Unavailable { reason: reason.into(), retry_after: None }
}

fn body(response: Result<Response<Body>, ureq::Error>, limit: u64) -> Result<Vec<u8>, ModelError> {
    let mut response = response.map_err(|error| failure(&error))?;
    if response.status().is_success() {
        let body = response.body_mut().with_config().limit(limit).read_to_vec();
        return body.map_err(|error| failure(&error));
    }
    let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
    let status = response.status().as_u16();
    let said = response.body_mut().with_config().limit(MAX_PROBLEM_BYTES).read_to_vec().unwrap_or_default();
    Err(refusal(status, seconds.map(Duration::from_secs), &said))
}

/// Why there is no answer, without the URL.
fn failure(error: &ureq::Error) -> ModelError {
    unavailable(match error {
        ureq::Error::Timeout(_) => "it does not answer in time".to_owned(),
        ureq::Error::HostNotFound => "its name cannot be resolved".to_owned(),
        ureq::Error::BodyExceedsLimit(limit) => format!("its answer is longer than {limit} bytes"),
        ureq::Error::Io(error) => format!("no connection, or one that broke: {error}"),
        ureq::Error::BadUri(_) => "its URL is not one".to_owned(),
        other => format!("no answer: {other}"),
    })
}

/// What a status means that is no success.
fn refusal(status: u16, retry_after: Option<Duration>, said: &[u8]) -> ModelError {
    let quoted = quoted(said);
    let reason = |what: &str| format!("{what} (status {status}){quoted}");
    match status {
        413 => ModelError::OutOfMemory(reason("the batch is too large for the server")),
        400 | 422 => ModelError::Forward(reason("the server refuses the sequences")),
        401 | 403 => unavailable(reason("the server refuses the key")),
        404 | 409 => unavailable(reason("the server does not have the model that was opened")),
        300..400 => unavailable(reason("the server redirects, which is not followed")),
        _ => ModelError::Unavailable { reason: reason("the server cannot answer now"), retry_after },
    }
}

/// What the server says, as the end of a sentence; empty where it says nothing.
fn quoted(said: &[u8]) -> String {
    let said: Said = serde_json::from_slice(said).unwrap_or_default();
    let Some(said) = said.detail.or(said.error.message) else { return String::new() };
    let end = said.char_indices().nth(MAX_QUOTED).map_or(said.len(), |(end, _)| end);
    format!(": {}", &said[..end])
}
