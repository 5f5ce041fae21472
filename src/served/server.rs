//! Requests to a server that runs a model.

use crate::config::ServedSettings;
use lm::models::ModelError;
use serde::Deserialize;
use std::io::ErrorKind;
use std::time::{Duration, Instant};
use ureq::http::Response;
use ureq::{Agent, Body, Timeout};

/// Maximum time to resolve a name, and then to connect.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum number of bytes read of an answer that is no success.
const MAX_PROBLEM_BYTES: u64 = 64 << 10;
/// Maximum number of characters quoted of it.
const MAX_QUOTED: usize = 300;

/// Maximum number of bytes that are read of what a server says of itself.
pub const MAX_SAID: u64 = 1 << 20;
/// The type of the answers that are read.
pub const MEDIA: &str = "application/json";

pub struct ModelServer {
    /// For batches.
    agent: Agent,
    /// For what the server is.
    asking: Agent,
    url: String,
    /// The key that it asks for.
    key: Option<String>,
    /// The name that it serves the model under.
    pub name: String,
    /// Number of URLs of the model.
    pub urls: usize,
    /// How long a batch, and a question about the model, may take.
    timeouts: [Duration; 2],
}

/// Which requests these are, by how long they may take.
#[derive(Clone, Copy)]
pub enum Patience {
    /// Those with a batch.
    Batch,
    /// Those about the model.
    Description,
    /// Those that must be answered by then, since others were asked before them.
    Until(Instant),
}

/// Content of an answer that is no success: `application/problem+json`, or an object as OpenAI's servers or TGI write it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Said {
    detail: Option<String>,
    error: Option<SaidError>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum SaidError {
    Object { message: String },
    Text(String),
}

impl Said {
    fn text(self) -> Option<String> {
        let error = self.error.map(|error| match error {
            SaidError::Object { message: text } | SaidError::Text(text) => text,
        });
        self.detail.or(error)
    }
}

impl ModelServer {
    pub fn new(name: &str, url: &str, key: Option<&str>, settings: &ServedSettings) -> Self {
        Self {
            agent: agent(settings.timeout),
            asking: agent(settings.question_timeout()),
            url: url.trim_end_matches('/').to_owned(),
            key: key.map(str::to_owned),
            name: name.to_owned(),
            urls: settings.urls.len(),
            timeouts: [settings.timeout, settings.question_timeout()],
        }
    }

    /// The patience for several requests that together may take as long as one.
    pub fn shared(&self, patience: Patience) -> Patience {
        let [batch, description] = self.timeouts;
        match patience {
            Patience::Batch => Patience::Until(Instant::now() + batch),
            Patience::Description => Patience::Until(Instant::now() + description),
            Patience::Until(end) => Patience::Until(end),
        }
    }

    pub fn get(&self, path: &str, limit: u64) -> Result<Vec<u8>, ModelError> {
        self.body(self.get_answer(path), limit)
    }

    fn get_answer(&self, path: &str) -> Result<Response<Body>, ureq::Error> {
        let mut request = self.asking.get(format!("{}{path}", self.url));
        if let Some(authorization) = self.authorization() {
            request = request.header("authorization", authorization);
        }
        request.call()
    }

    /// As [`Self::get`], for a route that some servers do not have; `None` if this one does not.
    pub fn get_if_there(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, ModelError> {
        match self.get_answer(path).map_err(|error| failure(&error))? {
            response if [404, 405, 501].contains(&response.status().as_u16()) => Ok(None),
            response => self.body(Ok(response), limit).map(Some),
        }
    }

    /// Posts JSON, and returns the answer of the wanted type, reading at most `limit` bytes.
    pub fn post(
        &self,
        path: &str,
        json: &[u8],
        accept: &str,
        limit: u64,
        patience: Patience,
    ) -> Result<Vec<u8>, ModelError> {
        let agent = match patience {
            Patience::Batch | Patience::Until(_) => &self.agent,
            Patience::Description => &self.asking,
        };
        let mut request = agent.post(format!("{}{path}", self.url));
        if let Patience::Until(end) = patience {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return Err(failure(&ureq::Error::Timeout(Timeout::Global)));
            }
            request = request.config().timeout_global(Some(rest)).build();
        }
        let mut request = request.header("content-type", "application/json").header("accept", accept);
        if let Some(authorization) = self.authorization() {
            request = request.header("authorization", authorization);
        }
        self.body(request.send(json), limit)
    }

    fn authorization(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("Bearer {key}"))
    }

    fn body(&self, response: Result<Response<Body>, ureq::Error>, limit: u64) -> Result<Vec<u8>, ModelError> {
        let mut response = response.map_err(|error| failure(&error))?;
        if response.status().is_success() {
            let body = response.body_mut().with_config().limit(limit).read_to_vec();
            return body.map_err(|error| failure(&error));
        }
        let seconds = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
        let status = response.status().as_u16();
        let said = response.body_mut().with_config().limit(MAX_PROBLEM_BYTES).read_to_vec().unwrap_or_default();
        Err(refusal(status, seconds.map(Duration::from_secs), &self.quoted(&said)))
    }

    /// Returns what the server says of a failure, as the end of a sentence and without the key; empty if it says nothing.
    fn quoted(&self, said: &[u8]) -> String {
        let said: Said = serde_json::from_slice(said).unwrap_or_default();
        said.text().map_or(String::new(), |said| format!(": {}", excerpt(&self.without_key(&said))))
    }

    fn without_key(&self, said: &str) -> String {
        match &self.key {
            Some(key) => said.replace(key, "[key]"),
            None => said.to_owned(),
        }
    }

    pub fn parsed<'a, T: Deserialize<'a>>(&self, json: &'a [u8]) -> Result<T, ModelError> {
        serde_json::from_slice(json).map_err(|error| self.unreadable(&error.to_string()))
    }

    /// Returns the error of an answer that cannot be read; `reason` may quote a part of the answer.
    pub fn unreadable(&self, reason: &str) -> ModelError {
        unavailable(format!("its answer cannot be read: {}", excerpt(&self.without_key(reason))))
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

fn refusal(status: u16, retry_after: Option<Duration>, quoted: &str) -> ModelError {
    let reason = |what: &str| format!("{what} (status {status}){quoted}");
    match status {
        413 => ModelError::OutOfMemory(reason("the batch is too large for the server")),
        400 | 422 => ModelError::Forward(reason("the server refuses the sequences")),
        // An answer about a key may contain a part of it.
        401 | 403 => unreached(format!("the server refuses the key (status {status})")),
        404 | 409 => unreached(reason("the server does not have the model that was opened")),
        300..400 => unreached(reason("the server redirects, which is not followed")),
        429 | 503 => ModelError::Unavailable { reason: reason("the server is busy"), had_batch: false, retry_after },
        _ => unavailable(reason("the server failed")),
    }
}

/// As much of what a server says as is quoted.
pub fn excerpt(said: &str) -> String {
    match said.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{} ...", &said[..end]),
        None => said.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_quoted_without_the_key_and_not_at_length() {
        let server = ModelServer::new("m", "http://a", Some("sk-1"), &ServedSettings::default());
        assert_eq!(server.quoted(br#"{ "detail": "no such key: sk-1" }"#), ": no such key: [key]");
        assert_eq!(server.quoted(br#"{ "error": { "message": "sk-1" } }"#), ": [key]");
        assert_eq!(server.quoted(br#"{ "error": "sk-1", "error_type": "validation" }"#), ": [key]");
        assert_eq!(server.quoted(b"<html>sk-1</html>"), "");
        let said = server.unreadable("invalid type: string \"Bearer sk-1\"").to_string();
        assert!(said.contains("Bearer [key]") && !said.contains("sk-1"), "{said}");
        let long = format!(r#"{{ "detail": "{}" }}"#, "\u{e9}".repeat(10_000));
        assert_eq!(server.quoted(long.as_bytes()).chars().count(), 2 + MAX_QUOTED + 4);
    }

    #[test]
    fn only_what_may_be_due_to_the_batch_counts_against_it() {
        let had_batch = |status| match refusal(status, None, "") {
            ModelError::Unavailable { had_batch, .. } => Some(had_batch),
            _ => None,
        };
        assert_eq!([301, 401, 403, 404, 409, 429, 503].map(had_batch), [Some(false); 7]);
        assert_eq!([500, 502, 504].map(had_batch), [Some(true); 3]);
        assert_eq!([400, 413, 422].map(had_batch), [None; 3]);
    }
}
