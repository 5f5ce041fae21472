//! The servers of a model.

use super::description::ServedDescription;
use super::model::Backend;
use super::openai::OpenAi;
use super::openai_requests::OpenAiServer;
use super::pdr_audit::AuditServer;
use super::probed::Probed;
use super::server::{ModelServer, unreached};
use super::sglang::SglangServer;
use super::vllm::VllmServer;
use crate::config::{ServedKind, ServedSettings};
use lm::models::ModelError;
use lm::tokenizer::Tokenizer;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Time to wait for servers with an earlier URL once one has said what it runs.
const GRACE: Duration = Duration::from_secs(2);

/// A model that is served elsewhere: its servers, by the index of their URL.
#[derive(Clone)]
pub struct ServedSource {
    kind: ServedKind,
    /// True if its answers have the moments of the distribution.
    pub gives_moments: bool,
    /// True if its answers have the log-probability of the most probable token.
    pub gives_first_choice: bool,
    /// Price of a million tokens of a prompt; `None` if the settings state none.
    pub price: Option<f64>,
    pub name: String,
    /// Number of batches that each runs at once.
    connections: usize,
    servers: Arc<[Arc<dyn Backend>]>,
}

impl fmt::Debug for ServedSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, servers, .. } = self;
        write!(formatter, "{name:?}, served by {kind} at {} URLs", servers.len())
    }
}

impl ServedSource {
    /// The servers of a model of this name; nothing is asked of them yet.
    pub fn new(name: &str, settings: &ServedSettings, key: Option<&str>) -> Result<Self, ModelError> {
        let kind = settings.kind.ok_or_else(|| unreached("the settings name no kind of server"))?;
        let server = |url: &String| -> Arc<dyn Backend> {
            let server = ModelServer::new(name, url, key, settings);
            match kind {
                ServedKind::PdrAudit => Arc::new(AuditServer { server }),
                ServedKind::Vllm => Arc::new(Probed(VllmServer { server, moments: settings.moments })),
                ServedKind::Sglang => Arc::new(Probed(SglangServer { server, context: settings.context })),
                ServedKind::Openai => Arc::new(Probed(OpenAi(OpenAiServer {
                    server,
                    context: settings.context,
                    top_logprobs: settings.top_logprobs,
                }))),
            }
        };
        Ok(Self {
            kind,
            gives_moments: kind == ServedKind::PdrAudit || settings.moments,
            gives_first_choice: settings.top_logprobs,
            price: settings.price_per_million_tokens,
            name: name.to_owned(),
            connections: settings.connections,
            servers: settings.urls.iter().map(server).collect(),
        })
    }

    /// Returns true if its servers continue texts.
    pub fn continues_texts(&self) -> bool {
        self.kind == ServedKind::Vllm
    }

    /// Returns the server of one of the model's places; each server has one place per batch that it runs at once.
    pub fn server(&self, place: usize) -> Option<&Arc<dyn Backend>> {
        self.servers.get(place / self.connections.max(1))
    }
}

type DescribeResult = Result<ServedDescription, ModelError>;

/// Returns the description of the model by the first server by its URL that answers. All are asked at once, and once one has
/// answered the others have two seconds.
pub fn describe(source: &ServedSource, tokenizer: &Tokenizer) -> Result<ServedDescription, ModelError> {
    let said = ask_all(source, tokenizer)?;
    let mut answers: Vec<Option<DescribeResult>> = source.servers.iter().map(|_| None).collect();
    let mut until = None;
    while let Some((url, answer)) = next_before(&said, until) {
        if answer.is_ok() {
            until.get_or_insert_with(|| Instant::now() + GRACE);
        }
        answers[url] = Some(answer);
        let is_failure = |answer: &&Option<DescribeResult>| matches!(answer, Some(Err(_)));
        if answers.iter().find(|answer| !is_failure(answer)).is_some_and(Option::is_some) {
            break;
        }
    }
    let mut reasons = Vec::new();
    for (url, answer) in answers.into_iter().enumerate() {
        match answer {
            Some(Ok(description)) => return Ok(description),
            Some(Err(error)) => reasons.push(format!("server {}: {error}", url + 1)),
            None => reasons.push(format!("server {}: asking it panicked", url + 1)),
        }
    }
    Err(unreached(reasons.join("; ")))
}

/// Asks all servers for their descriptions of the model, which come with the index of the URL as they are ready.
fn ask_all(source: &ServedSource, tokenizer: &Tokenizer) -> Result<Receiver<(usize, DescribeResult)>, ModelError> {
    let (sender, said) = channel();
    for (url, server) in source.servers.iter().enumerate() {
        let (server, sender, tokenizer) = (Arc::clone(server), sender.clone(), tokenizer.clone());
        // Whoever has an answer already does not listen any more.
        let ask = move || _ = sender.send((url, server.describe(&tokenizer)));
        let asked = Builder::new().name("served-model".to_owned()).spawn(ask);
        asked.map_err(|error| unreached(format!("there is no thread to ask it: {error}")))?;
    }
    Ok(said)
}

/// The next message, if there is one to come before then.
fn next_before<T>(messages: &Receiver<T>, until: Option<Instant>) -> Option<T> {
    match until {
        None => messages.recv().ok(),
        Some(until) => messages.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
    }
}
