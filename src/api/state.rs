//! State shared by the routes.

use super::accepted_origins::{AcceptedHosts, AcceptedOrigins};
use super::body_budget::BodyBudget;
use super::calibration_cache::CalibrationCache;
use super::request_note::RequestNote;
use super::routed_jobs::RoutedJobs;
use crate::access::{AccessRecord, Client, Keyring};
use crate::config::{LimitSettings, Settings};
use crate::scorer::Scorer;
use crate::telemetry::MetricsExporter;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Uploads that are read at once; each has a thread.
const MOST_UPLOADS: usize = 32;

/// State shared by the routes; cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// Scores texts; leads to the models and the engine as well.
    pub scorer: Scorer,
    /// The jobs of every kind.
    pub jobs: RoutedJobs,
    /// The calibrations that were used lately.
    pub calibration_cache: CalibrationCache,
    /// Limits of one request. The scorer enforces `limits.text`.
    pub limits: LimitSettings,
    /// The largest request body, in bytes: `server.body_limit`.
    pub body_limit: u64,
    /// Memory budget of the bodies that are being read.
    pub bodies: BodyBudget,
    /// Timeout of a request, from its arrival: `server.request_timeout`.
    pub request_timeout: Duration,
    /// Maximum time for which a client may read nothing of an answer: `server.write_timeout`.
    pub write_timeout: Duration,
    /// Maximum duration of a forward pass before the process counts as hung: `engine.forward_timeout`.
    pub forward_timeout: Duration,
    /// Exporter behind `/metrics`.
    pub metrics: MetricsExporter,
    /// Cancelled when the service is about to end: it is not ready from then on, though requests are served.
    pub draining: CancellationToken,
    /// Accepted keys; `None` if no key is needed.
    pub keyring: Option<Keyring>,
    /// Pages and hosts that are accepted.
    pub origins: AcceptedOrigins,
    /// True if `/metrics` is served on an address of its own.
    pub metrics_apart: bool,
    /// Record of each request; `None` if none is kept.
    pub record: Option<AccessRecord>,
    /// The client of the request.
    pub client: Arc<Client>,
    /// Facts about the request.
    pub note: RequestNote,
    /// Uploads that may be read at once.
    pub uploads: Arc<Semaphore>,
}

impl ApiState {
    /// The parts under the limits of the settings.
    pub fn new(scorer: Scorer, jobs: RoutedJobs, metrics: MetricsExporter, settings: &Settings) -> Self {
        let Settings { server, limits, .. } = settings;
        Self {
            scorer,
            jobs,
            calibration_cache: CalibrationCache::default(),
            limits: limits.clone(),
            body_limit: server.body_limit.as_u64(),
            bodies: BodyBudget::new(server.body_memory.map(|size| size.as_u64()), server.body_limit.as_u64()),
            request_timeout: server.request_timeout,
            write_timeout: server.write_timeout,
            forward_timeout: settings.engine.forward_timeout,
            metrics,
            draining: CancellationToken::new(),
            keyring: None,
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
            record: None,
            client: Arc::new(Client::without_keys()),
            note: RequestNote::default(),
            uploads: Arc::new(Semaphore::new(MOST_UPLOADS)),
        }
    }

    /// The same with keys, which every request has to have from then on.
    #[must_use]
    pub fn with_keys(self, keyring: Keyring) -> Self {
        Self { keyring: Some(keyring), ..self }
    }

    /// The same, where each request is written to a record.
    #[must_use]
    pub fn with_record(self, record: AccessRecord) -> Self {
        Self { record: Some(record), ..self }
    }
}
