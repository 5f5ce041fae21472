//! Requests to a server that runs a model.

use crate::models::ModelError;
use serde::Deserialize;
use std::io::ErrorKind;
use std::time::Duration;
use ureq::http::Response;
use ureq::{Agent, Body, Timeout};

/// How long resolving a name may take, and then connecting.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a server may take to say what it is.
const DESCRIBE: Duration = Duration::from_secs(30);
/// The most bytes that are read of an answer that is no success.
const MAX_PROBLEM_BYTES: u64 = 64 << 10;
/// The most characters that are quoted of it.
const MAX_QUOTED: usize = 300;

/// A server at a URL.
pub struct ModelServer {
    /// For batches.
    agent: Agent,
    /// For what the server is.
    asking: Agent,
    url: String,
    /// The value of the header `authorization`.
    authorization: Option<String>,
}

/// Which requests these are, by how long they may take.
#[derive(Clone, Copy)]
pub enum Patience {
    /// Those with a batch.
    Batch,
    /// Those about the model.
    Description,
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
    /// A server, of which nothing is asked yet. A batch may take as long as `timeout`.
    pub fn new(url: &str, key: Option<&str>, timeout: Duration) -> Self {
        Self {
            agent: agent(timeout),
            asking: agent(timeout.min(DESCRIBE)),
            url: url.trim_end_matches('/').to_owned(),
            authorization: key.map(|key| format!("Bearer {key}")),
        }
    }

    /// Asks for what is at a path, of which at most `limit` bytes are read.
    ///
    /// # Errors
    /// As the documentation of the module says.
    pub fn get(&self, path: &str, limit: u64) -> Result<Vec<u8>, ModelError> {
        let mut request = self.asking.get(format!("{}{path}", self.url));
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        body(request.call(), limit)
    }

    /// Posts JSON, and gives the answer of the wanted type, of which at most `limit` bytes are read.
    ///
    /// # Errors
    /// As the documentation of the module says.
    pub fn post(
        &self,
        path: &str,
        json: &[u8],
        accept: &str,
        limit: u64,
        patience: Patience,
    ) -> Result<Vec<u8>, ModelError> {
        let agent = match patience {
            Patience::Batch => &self.agent,
            Patience::Description => &self.asking,
        };
        let request = agent.post(format!("{}{path}", self.url));
        let mut request = request.header("content-type", "application/json").header("accept", accept);
        if let Some(authorization) = &self.authorization {
            request = request.header("authorization", authorization);
        }
        body(request.send(json), limit)
    }
}

/// Every request has a connection of its own: one that is kept would lead to the same server behind a balancer for ever, and may be
/// closed by the other side at any time. Beside a forward pass it costs nothing. No proxy of the environment is asked.
fn agent(timeout: Duration) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(None)
        .max_idle_connections(0)
        .timeout_global(Some(timeout))
        .timeout_resolve(Some(CONNECT.min(timeout)))
        .timeout_connect(Some(CONNECT.min(timeout)))
        .user_agent(concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION")))
        .accept_encoding("identity");
    config.build().into()
}

/// The server had the batch and gave no answer that counts.
pub fn unavailable(reason: impl Into<String>) -> ModelError {
    ModelError::Unavailable { reason: reason.into(), had_batch: true, retry_after: None }
}

/// The server did not have the batch, or not as the one that it was.
pub fn unreached(reason: impl Into<String>) -> ModelError {
    ModelError::Unavailable { reason: reason.into(), had_batch: false, retry_after: None }
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

/// Why there is no answer, without the URL: what others say of a fault may hold it.
fn failure(error: &ureq::Error) -> ModelError {
    match error {
        ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => unreached("it cannot be connected to in time"),
        ureq::Error::Timeout(_) => unavailable("it does not answer in time"),
        ureq::Error::HostNotFound => unreached("its name cannot be resolved"),
        ureq::Error::ConnectionFailed | ureq::Error::BadUri(_) => unreached("it cannot be connected to"),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) | ureq::Error::TlsRequired => {
            unreached("the connection cannot be encrypted: its certificate is not trusted, or it has none")
        }
        ureq::Error::BodyExceedsLimit(limit) => unavailable(format!("its answer is longer than {limit} bytes")),
        ureq::Error::Io(error) => io_failure(error),
        ureq::Error::Protocol(_) | ureq::Error::Http(_) => unavailable("its answer is not HTTP"),
        _ => unavailable("the request failed"),
    }
}

fn io_failure(error: &std::io::Error) -> ModelError {
    match error.kind() {
        ErrorKind::ConnectionRefused => unreached("it refuses the connection"),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable | ErrorKind::NetworkDown => {
            unreached("it cannot be reached")
        }
        ErrorKind::InvalidData => {
            unreached("the connection cannot be encrypted: its certificate is not trusted, or it has none")
        }
        ErrorKind::TimedOut | ErrorKind::WouldBlock => unavailable("it does not answer in time"),
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::UnexpectedEof => unavailable("it closed the connection"),
        // Resolvers have no kind of their own.
        _ => unreached("its name cannot be resolved, or the connection failed"),
    }
}

/// What a status means that is no success.
fn refusal(status: u16, retry_after: Option<Duration>, said: &[u8]) -> ModelError {
    let quoted = quoted(said);
    let reason = |what: &str| format!("{what} (status {status}){quoted}");
    match status {
        413 => ModelError::OutOfMemory(reason("the batch is too large for the server")),
        400 | 422 => ModelError::Forward(reason("the server refuses the sequences")),
        401 | 403 => unreached(reason("the server refuses the key")),
        404 | 409 => unreached(reason("the server does not have the model that was opened")),
        300..400 => unreached(reason("the server redirects, which is not followed")),
        429 | 503 => ModelError::Unavailable { reason: reason("the server is busy"), had_batch: false, retry_after },
        _ => unavailable(reason("the server failed")),
    }
}

/// What the server says, as the end of a sentence; empty where it says nothing.
fn quoted(said: &[u8]) -> String {
    let said: Said = serde_json::from_slice(said).unwrap_or_default();
    let Some(said) = said.detail.or(said.error.message) else { return String::new() };
    let end = said.char_indices().nth(MAX_QUOTED).map_or(said.len(), |(end, _)| end);
    format!(": {}", &said[..end])
}
