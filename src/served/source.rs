//! The servers of a model.

use super::backend::Backend;
use super::description::ServedDescription;
use super::pdr_audit::AuditServer;
use super::server::{ModelServer, unreached};
use super::vllm::VllmServer;
use crate::config::{ServedKind, ServedSettings};
use crate::models::ModelError;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::Builder;

/// A model that is served elsewhere: its servers, by the index of their URL.
#[derive(Clone)]
pub struct ServedSource {
    kind: ServedKind,
    /// Whether its answers have the moments of the distribution.
    pub gives_moments: bool,
    /// The name that it is served under.
    pub name: String,
    /// How many batches each runs at once.
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
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] where the settings name no kind.
    pub fn new(name: &str, settings: &ServedSettings, key: Option<&str>) -> Result<Self, ModelError> {
        let kind = settings.kind.ok_or_else(|| unreached("the settings name no kind of server"))?;
        let urls = settings.urls.len();
        let server = |url: &String| -> Arc<dyn Backend> {
            let server = ModelServer::new(url, key, settings);
            match kind {
                ServedKind::PdrAudit => Arc::new(AuditServer { server, name: name.to_owned(), urls }),
                ServedKind::Vllm => {
                    Arc::new(VllmServer { server, name: name.to_owned(), urls, moments: settings.moments })
                }
            }
        };
        Ok(Self {
            kind,
            gives_moments: kind == ServedKind::PdrAudit || settings.moments,
            name: name.to_owned(),
            connections: settings.connections,
            servers: settings.urls.iter().map(server).collect(),
        })
    }

    /// The server of one of the model's places, of which each has as many as it runs batches at once.
    pub fn server(&self, place: usize) -> Option<&Arc<dyn Backend>> {
        self.servers.get(place / self.connections.max(1))
    }
}

/// What the first server that answers says of the model. All are asked at once, so that one that is slow holds nothing up.
///
/// # Errors
/// [`ModelError::Unavailable`] with what is wrong with each where none answers.
pub fn describe(source: &ServedSource) -> Result<ServedDescription, ModelError> {
    let mut reasons = vec!["asking it panicked".to_owned(); source.servers.len()];
    let (sender, answers) = channel();
    for (url, server) in source.servers.iter().enumerate() {
        let (server, sender) = (Arc::clone(server), sender.clone());
        // Who has an answer already does not listen any more.
        let ask = move || _ = sender.send((url, server.describe()));
        let asked = Builder::new().name("served-model".to_owned()).spawn(ask);
        asked.map_err(|error| unreached(format!("there is no thread to ask it: {error}")))?;
    }
    drop(sender);
    for (url, answer) in answers {
        match answer {
            Ok(description) => return Ok(description),
            Err(error) => reasons[url] = error.to_string(),
        }
    }
    let reasons = reasons.iter().enumerate().map(|(url, reason)| format!("server {}: {reason}", url + 1));
    Err(unreached(reasons.collect::<Vec<_>>().join("; ")))
}
