//! Servers of every kind behind a relay, for what must hold for all of them.

use super::fake_echo::{EchoManners, Takes};
use super::fake_server::{FakeServer, NAME};
use super::{engine, served};
use crate::common::app::{App, GOLDEN, TINY};
use crate::common::relay::Relay;
use pdr_audit::config::{ServedKind, Settings};
use std::net::SocketAddr;
use std::time::Duration;

/// A kind of server, and whether it takes texts alone.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    pub kind: ServedKind,
    pub takes_texts: bool,
}

pub const ENGINE: Kind = Kind { kind: ServedKind::PdrAudit, takes_texts: false };
/// Those that play the servers of others.
pub const FAKES: [Kind; 4] = [
    Kind { kind: ServedKind::Vllm, takes_texts: false },
    Kind { kind: ServedKind::Sglang, takes_texts: false },
    Kind { kind: ServedKind::Openai, takes_texts: false },
    Kind { kind: ServedKind::Openai, takes_texts: true },
];

/// All kinds.
pub fn kinds() -> impl Iterator<Item = Kind> {
    FAKES.into_iter().chain([ENGINE])
}

/// A server; an engine ends with this.
pub enum Server {
    Engine(App),
    Fake(FakeServer),
}

impl Kind {
    pub async fn start(self) -> Server {
        if let ServedKind::PdrAudit = self.kind {
            return Server::Engine(engine().await);
        }
        let fake = FakeServer::of(GOLDEN).await;
        if self.takes_texts {
            let manners = EchoManners { takes: Takes::Text, names_ids: false, ..EchoManners::default() };
            fake.state.lock().unwrap().echo = manners;
        }
        Server::Fake(fake)
    }

    pub fn settings(self, settings: &mut Settings, urls: &[String], timeout: Duration) {
        let name = if self.kind == ServedKind::PdrAudit { TINY } else { NAME };
        served(settings, self.kind, name, GOLDEN, urls);
        settings.models[0].served.as_mut().unwrap().timeout = timeout;
    }

    /// A front of servers of this kind.
    pub async fn front(self, urls: &[String], timeout: Duration) -> App {
        App::with(|settings| self.settings(settings, urls, timeout)).await
    }

    /// Number of answers that refuse a batch of two texts, and then one of them at least. SGLang is asked again each time, with a token
    /// to generate, and may be asked for both halves at once.
    pub fn refusals(self) -> usize {
        if self.kind == ServedKind::Sglang { 6 } else { 2 }
    }

    /// A part of the requests by which the model is checked.
    fn probe(self, server: &Server) -> Option<String> {
        match server {
            Server::Engine(_) => None,
            Server::Fake(_) if self.takes_texts => Some("One, two, three".to_owned()),
            Server::Fake(fake) if self.kind == ServedKind::Openai => {
                let ids = fake.state.lock().unwrap().tokenizer.plain_ids("One, two").unwrap();
                // The last may be another one where the text goes on.
                Some(ids[..ids.len() - 1].iter().map(u32::to_string).collect::<Vec<_>>().join(","))
            }
            Server::Fake(_) => Some("0,1,2,3,4,5,6,7".to_owned()),
        }
    }

    /// A relay to a server of this kind.
    pub fn relay(self, server: &Server) -> Relay {
        let relay = Relay::to(server.address());
        relay.state().probe = self.probe(server);
        relay
    }
}

impl Server {
    fn address(&self) -> SocketAddr {
        match self {
            Self::Engine(app) => app.address,
            Self::Fake(fake) => fake.address,
        }
    }
}
