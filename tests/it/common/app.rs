//! The service as clients see it: a real server on a free port, over the committed golden models.

use super::client::Client;
use super::goldens::directory;
use lm::hub::{Hub, HubError};
use pdr_audit::api::{self, ApiState, JobKinds};
use pdr_audit::app::{EntryControl, ServiceJobs, signing_key, start_scorer};
use pdr_audit::config::{self, DeviceChoice, ModelSettings, ModelSource, Settings};
use pdr_audit::engine::Engine;
use pdr_audit::scorer::Scorer;
use pdr_audit::server::{ConnectionLimits, Listener, address_limit};
use pdr_audit::store::Store;
use pdr_audit::telemetry::MetricsExporter;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// The id of the golden model that answers where a request names none.
pub const TINY: &str = "tiny";
/// The golden of [`TINY`].
pub const GOLDEN: &str = "gptneox-parallel";
/// The id of its reference model.
pub const REFERENCE: &str = "tiny-reference";

/// A running service; also its client.
pub struct App {
    client: Client,
    pub engine: Engine,
    pub entry: EntryControl,
    server: JoinHandle<()>,
}

impl Deref for App {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl Drop for App {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl App {
    /// With the default settings and [`TINY`] as default model.
    pub async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// With other settings.
    pub async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Settings::default();
        settings.engine = config::EngineSettings {
            default_model: Some(TINY.into()),
            device: DeviceChoice::Cpu,
            threads: 1,
            max_batch_tokens: Some(512),
            ..settings.engine
        };
        let tiny = ModelSettings { reference: Some(REFERENCE.to_owned()), ..golden(TINY, GOLDEN) };
        settings.models = vec![tiny, golden(REFERENCE, "gptneox-sequential")];
        change(&mut settings);
        let app = Self::start_as_it_is(&settings).await;
        app.engine.wait_until_loaded().await.unwrap();
        app
    }

    /// With these settings, not waiting for any model. The Hub has no place for its files, so no test reaches the real one.
    pub async fn start_as_it_is(settings: &Settings) -> Self {
        Self::over_hub(settings, Hub::from_environment(|_| None)).await
    }

    /// The same over another Hub.
    pub async fn over_hub(settings: &Settings, hub: Result<Hub, HubError>) -> Self {
        // The engine counts into the recorder that is there when it starts.
        MetricsExporter::install().unwrap();
        Self::over_scorer(settings, start_scorer(settings, hub).unwrap()).await
    }

    /// The same over a scorer that was started otherwise.
    pub async fn over_scorer(settings: &Settings, scorer: Scorer) -> Self {
        Self::with_kinds(settings, scorer, &JobKinds::all()).await
    }

    /// The same with these kinds of job.
    pub async fn with_kinds(settings: &Settings, scorer: Scorer, kinds: &JobKinds) -> Self {
        let metrics = MetricsExporter::install().unwrap();
        let engine = scorer.engine().clone();
        let store = Store::open(settings.store.url.as_ref()).await.unwrap();
        store.limit_memory(settings.store.memory.as_u64()).await.unwrap();
        let jobs = ServiceJobs::start(kinds, &scorer, &store, settings).await.unwrap();
        let entry = EntryControl::open(settings).unwrap();
        let state = entry.guard(ApiState::new(scorer, jobs.routed, metrics, settings));
        let signing_key = signing_key(settings).unwrap().map(Arc::new);
        let state = ApiState { program: env!("CARGO_BIN_EXE_pdr-audit").into(), signing_key, ..state };
        let config::ServerSettings { header_timeout, write_timeout, connections_per_address, .. } = settings.server;
        let connections = settings.server.connections.unwrap_or(10_000);
        let per_address = address_limit(connections_per_address, connections);
        let limits = ConnectionLimits { header_timeout, write_timeout, connections, per_address };
        let listener = Listener::bind(("127.0.0.1", 0), limits, entry.tls.clone()).await.unwrap();
        let client = Client::new(listener.address().unwrap());
        let server = tokio::spawn(listener.serve(api::router(state, kinds), std::future::pending()));
        Self { client, engine, entry, server }
    }

    /// Panics unless the engine's queue empties soon.
    pub async fn assert_nothing_is_left(&self) {
        let until = Instant::now() + Duration::from_secs(10);
        loop {
            let status = self.engine.status();
            if (status.interactive_tokens, status.batch_tokens) == (0, 0) {
                return;
            }
            assert!(Instant::now() < until, "tokens are left in the queue: {status:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A golden model, loaded at start.
pub fn golden(id: &str, golden: &str) -> ModelSettings {
    let path = directory(golden);
    ModelSettings {
        id: id.to_owned(),
        source: ModelSource { text: path.display().to_string(), path },
        device: vec![DeviceChoice::Cpu],
        ..ModelSettings::default()
    }
}

/// Settings of these models on one thread of the CPU.
pub fn settings(models: Vec<ModelSettings>) -> Settings {
    let mut settings = Settings { models, ..Settings::default() };
    settings.engine.device = DeviceChoice::Cpu;
    settings.engine.threads = 1;
    settings
}
