//! State shared by the routes, and the part of it that the client of a request may see.

use super::accepted_origins::{AcceptedHosts, AcceptedOrigins};
use super::problem::{Kind, Problem};
use crate::access::{AccessRecord, Client, Keyring, MemoryBudget, RecordedWork, RequestMemory};
use crate::audits::Calibration;
use crate::config::{LimitSettings, Settings, parse_network};
use crate::jobs::{JobKind, Jobs};
use crate::scorer::Scorer;
use crate::slots::{Slot, Slots};
use crate::store::{Principal, Store};
use crate::telemetry::MetricsExporter;
use attestation::SigningKey;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, header};
use axum::response::{IntoResponse, Response};
use futures::future::{BoxFuture, FutureExt, join_all};
use ipnet::IpNet;
use moka::sync::Cache;
use serde::Serialize;
use std::any::Any;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Uploads that are read at once; each has a thread.
const MOST_UPLOADS: usize = 32;
/// Processes that read Parquet at once.
const MOST_PARQUET_PROCESSES: usize = 2;
/// Streams of events that are open at once. Each asks the store once a second.
const MOST_STREAMS: usize = 512;
/// Submissions that wait for their jobs at once. Each asks the store once a second.
const MOST_WAITS: usize = 512;
/// Maximum number of scores in the cache of calibrations; about 100 MB.
const MOST_CALIBRATION_SCORES: u64 = 4_000_000;

/// State shared by the routes; cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// Scores texts; leads to the models and the engine as well.
    pub scorer: Scorer,
    pub jobs: RoutedJobs,
    /// The calibrations that were used lately.
    pub calibration_cache: Cache<Uuid, Arc<Calibration>>,
    /// Limits of one request. The scorer enforces `limits.text`.
    pub limits: LimitSettings,
    /// The largest request body, in bytes: `server.body_limit`.
    pub body_limit: u64,
    /// Memory budget of the requests in flight.
    pub memory_budget: MemoryBudget,
    /// Memory that this request holds.
    pub memory: Arc<RequestMemory>,
    /// Timeout of a request, from its arrival: `server.request_timeout`.
    pub request_timeout: Duration,
    /// Maximum time for which a client may read nothing of an answer: `server.write_timeout`.
    pub write_timeout: Duration,
    /// Maximum duration of a forward pass before the process counts as hung: `engine.forward_timeout`.
    pub forward_timeout: Duration,
    pub metrics: MetricsExporter,
    /// Cancelled when the service is about to end: it is not ready from then on, though requests are served.
    pub draining: CancellationToken,
    /// Accepted keys; `None` if no key is needed.
    pub keyring: Option<Keyring>,
    /// Signs reports; `None` if they are not signed.
    pub signing_key: Option<Arc<SigningKey>>,
    pub origins: AcceptedOrigins,
    /// True if `/metrics` is served on an address of its own.
    pub metrics_apart: bool,
    /// Networks of proxies: `server.proxies`.
    pub proxies: Arc<[IpNet]>,
    /// Record of each request; `None` if none is kept.
    pub record: Option<AccessRecord>,
    pub client: Arc<Client>,
    pub note: RequestNote,
    pub slots: RequestSlots,
    /// This program, for processes of its own.
    pub program: PathBuf,
}

/// Slots by the name of a client; one client gets at most half of them, unless there are no names.
pub type ClientSlots = Slots<Arc<str>>;
pub type ClientSlot = Slot<Arc<str>>;

/// Slots of what requests hold for long; cheap to clone.
#[derive(Clone)]
pub struct RequestSlots {
    pub uploads: ClientSlots,
    pub parquet: ClientSlots,
    pub streams: ClientSlots,
    pub waits: ClientSlots,
}

impl Default for RequestSlots {
    fn default() -> Self {
        Self {
            uploads: Slots::halved(MOST_UPLOADS),
            parquet: Slots::halved(MOST_PARQUET_PROCESSES),
            streams: Slots::halved(MOST_STREAMS),
            waits: Slots::halved(MOST_WAITS),
        }
    }
}

/// The file of this process's program. The link of Linux also leads there where the file at its path was replaced since.
fn this_program() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    if link.exists() { link } else { std::env::current_exe().unwrap_or(link) }
}

impl ApiState {
    /// The parts under the limits of the settings.
    pub fn new(scorer: Scorer, jobs: RoutedJobs, metrics: MetricsExporter, settings: &Settings) -> Self {
        let Settings { server, limits, .. } = settings;
        let weigher =
            |_: &Uuid, calibration: &Arc<Calibration>| u32::try_from(calibration.weight()).unwrap_or(u32::MAX);
        let memory_budget =
            MemoryBudget::new(server.request_memory.map(|size| size.as_u64()), server.body_limit.as_u64());
        Self {
            scorer,
            jobs,
            calibration_cache: Cache::builder().max_capacity(MOST_CALIBRATION_SCORES).weigher(weigher).build(),
            limits: limits.clone(),
            body_limit: server.body_limit.as_u64(),
            memory: Arc::new(memory_budget.begin(&Principal::default())),
            memory_budget,
            request_timeout: server.request_timeout,
            write_timeout: server.write_timeout,
            forward_timeout: settings.engine.forward_timeout,
            metrics,
            draining: CancellationToken::new(),
            keyring: None,
            signing_key: None,
            origins: AcceptedOrigins {
                pages: server.cors.clone(),
                hosts: match (&settings.auth.keys, server.is_local()) {
                    (Some(_), _) => AcceptedHosts::All,
                    (None, true) => AcceptedHosts::Local,
                    (None, false) => AcceptedHosts::Private,
                },
                names: server.hosts.clone(),
            },
            metrics_apart: server.metrics.is_some() || settings.auth.keys.is_some(),
            proxies: server.proxies.iter().filter_map(|network| parse_network(network)).collect(),
            record: None,
            client: Arc::new(Client::without_keys()),
            note: RequestNote::default(),
            slots: RequestSlots::default(),
            program: this_program(),
        }
    }

    /// The same as a client sees it.
    fn seen_by(&self, client: &Arc<Client>) -> Self {
        Self {
            scorer: self.scorer.called_by(client.name()),
            jobs: RoutedJobs { client: client.principal().clone(), ..self.jobs.clone() },
            client: Arc::clone(client),
            ..self.clone()
        }
    }

    /// Refuses a request whose key is not accepted any more, since it took long.
    pub fn check_key(&self) -> Result<(), Problem> {
        let keyring = self.keyring.as_ref();
        if keyring.is_none_or(|keyring| keyring.still_accepts(&self.client, OffsetDateTime::now_utc())) {
            return Ok(());
        }
        Err(Problem::new(Kind::Unauthenticated, "the key was revoked or has expired while the request was read"))
    }

    /// Returns once the key of the client is not accepted any more.
    pub async fn key_refused(&self) {
        match &self.keyring {
            Some(keyring) => keyring.refused(&self.client).await,
            None => std::future::pending().await,
        }
    }

    /// Takes one of some slots for the client; `thing` names what it is for, in the singular.
    pub fn slot(&self, slots: &ClientSlots, thing: &str) -> Result<ClientSlot, Problem> {
        slots.try_take(self.client.principal().share_name()).map_err(|refusal| Problem::no_slot(refusal, thing))
    }

    /// The value as a JSON response of status 200. It is written by a worker, away from the threads that serve connections,
    /// since it may have megabytes.
    pub async fn json<T: Serialize + Send + 'static>(&self, value: T) -> Result<Response, Problem> {
        let written = self.scorer.workers().run(move || serde_json::to_vec(&value)).await?;
        let bytes = written.map_err(Problem::internal)?;
        self.memory.grow_to(bytes.len() as u64)?;
        Ok(([(header::CONTENT_TYPE, "application/json")], bytes).into_response())
    }
}

/// State of the router. No handler takes it; [`ClientState`] is the part that its client may see.
#[derive(Clone)]
pub struct RouterState(pub(super) ApiState);

/// State of a route, with the jobs, datasets and caches of the client alone.
pub struct ClientState(pub ApiState);

impl FromRequestParts<RouterState> for ClientState {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &RouterState) -> Result<Self, Problem> {
        let client = parts.extensions.get::<Arc<Client>>();
        let client = client.ok_or_else(|| Problem::internal("a request without a client reached a route"))?;
        let note = RequestNote::from_extensions(&parts.extensions);
        let memory = request_memory(&parts.extensions)?;
        Ok(Self(ApiState { note, memory, ..state.0.seen_by(client) }))
    }
}

/// Returns the memory that the request with these extensions holds.
///
/// # Errors
/// An internal one where no middleware began it.
pub fn request_memory(extensions: &Extensions) -> Result<Arc<RequestMemory>, Problem> {
    let memory = extensions.get::<Arc<RequestMemory>>().cloned();
    memory.ok_or_else(|| Problem::internal("a request without a share of memory reached a route"))
}

/// Facts about a request for the log and the record, noted as soon as they are known, since a client may disconnect before the
/// answer. Cheap to clone; clones share the same note.
#[derive(Clone, Debug, Default)]
pub struct RequestNote(Arc<Mutex<NotedRequest>>);

/// The noted facts.
#[derive(Clone, Debug, Default)]
pub struct NotedRequest {
    /// The client, once its key is known.
    pub client: Option<Arc<Client>>,
    pub work: RecordedWork,
}

impl RequestNote {
    /// The note of the request with these extensions. Without one, the notes go nowhere.
    pub fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    pub fn set_client(&self, client: &Arc<Client>) {
        self.lock().client = Some(Arc::clone(client));
    }

    pub fn update(&self, change: impl FnOnce(&mut RecordedWork)) {
        change(&mut self.lock().work);
    }

    pub fn read(&self) -> NotedRequest {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, NotedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The jobs of every kind, as one client sees them; cheap to clone.
#[derive(Clone)]
pub struct RoutedJobs {
    running: Arc<[Box<dyn RunningJobs>]>,
    store: Store,
    client: Principal,
}

/// The jobs of one kind, whichever it is.
pub trait RunningJobs: Any + Send + Sync {
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

impl<K: JobKind> RunningJobs for Jobs<K> {
    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Jobs::shutdown(self).boxed()
    }
}

impl RoutedJobs {
    /// The jobs of some kinds, all of them in this store.
    #[must_use]
    pub fn new(running: Vec<Box<dyn RunningJobs>>, store: Store) -> Self {
        Self { running: running.into(), store, client: Principal::default() }
    }

    /// The jobs of a kind as the client sees them.
    pub fn kind<K: JobKind>(&self) -> Result<Jobs<K>, Problem> {
        let jobs = self.running.iter().find_map(|jobs| (&**jobs as &dyn Any).downcast_ref::<Jobs<K>>());
        let jobs = jobs.ok_or_else(|| Problem::internal(format!("there are no jobs of the kind {}", K::NAME)))?;
        Ok(jobs.seen_by(self.client.clone()))
    }

    pub fn store(&self) -> &Store {
        &self.store
    }

    /// The client that sees them.
    pub fn client(&self) -> &Principal {
        &self.client
    }

    /// Takes no more jobs, and waits until those that run here have stopped.
    pub async fn shutdown(&self) {
        join_all(self.running.iter().map(|jobs| jobs.shutdown())).await;
    }
}
