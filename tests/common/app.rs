//! The service as clients see it: a real server on a free port, over the committed golden models.

use super::client::Client;
use super::goldens::directory;
use candle_core::Device;
use pdr_audit::api::{self, ApiState};
use pdr_audit::config::Settings;
use pdr_audit::engine::{Engine, EngineSettings};
use pdr_audit::jobs::Audits;
use pdr_audit::models::files::ModelFiles;
use pdr_audit::scorer::{Model, Registry, Scorer, Workers};
use pdr_audit::telemetry::Metrics;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
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
        settings.engine.default_model = Some(TINY.into());
        change(&mut settings);
        let metrics = Metrics::install().unwrap();
        let scorer = scorer(&settings);
        let engine = scorer.engine().clone();
        engine.wait_until_loaded().await.unwrap();
        let state = ApiState::new(scorer.clone(), Audits::new(scorer), metrics, &settings);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = Client::new(listener.local_addr().unwrap());
        let server = tokio::spawn(async { axum::serve(listener, api::router(state)).await.unwrap() });
        Self { client, engine, server }
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

fn scorer(settings: &Settings) -> Scorer {
    let open = |id: &str, golden: &str, reference: Option<&str>| {
        let files = ModelFiles::Directory(directory(golden));
        Model::open(id, files, reference.map(str::to_owned), true, &Device::Cpu).unwrap()
    };
    let opened = [open(TINY, GOLDEN, Some(REFERENCE)), open(REFERENCE, "gptneox-sequential", None)];
    let (models, sources) = opened.into_iter().unzip();
    let engine = EngineSettings {
        threads: 1,
        max_batch_tokens: 512,
        max_queue_tokens: settings.engine.max_queue_tokens.unwrap_or(1 << 20),
        cache_bytes: settings.engine.cache.as_u64(),
    };
    let engine = Engine::start(sources, engine).unwrap();
    let registry = Arc::new(Registry::new(models, settings.engine.default_model.as_deref()));
    Scorer::new(engine, registry, Workers::new(2).unwrap(), settings.limits.text.as_u64())
}
