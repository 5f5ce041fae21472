//! The service over two golden models and a store in memory: its router, and one request after another.

use crate::goldens::directory;
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Request, StatusCode, header};
use lm::hub::Hub;
use pdr_audit::api::{self, ApiState, JobKinds};
use pdr_audit::app::{ServiceJobs, start_scorer};
use pdr_audit::config::{DeviceChoice, ModelSettings, ModelSource, Settings};
use pdr_audit::store::Store;
use pdr_audit::telemetry::MetricsExporter;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

/// A service that is never shut down.
pub struct Service {
    runtime: Runtime,
    router: Router,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    /// Where the job or the dataset is that the request made.
    pub location: Option<String>,
    pub body: Bytes,
}

/// The one service of the process.
///
/// # Panics
/// If it does not start.
pub fn service() -> &'static Service {
    static SERVICE: OnceLock<Service> = OnceLock::new();
    SERVICE.get_or_init(|| {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime starts");
        let router = runtime.block_on(start());
        Service { runtime, router }
    })
}

impl Service {
    /// Sends a request, and holds the answer to what is true of every answer: it is no internal error, and a refusal is a
    /// problem. The headers `host` and `content-length` are added.
    ///
    /// # Panics
    /// If that does not hold.
    pub fn send(&self, request: axum::http::request::Builder, body: &[u8]) -> Answer {
        let request = request.header(header::HOST, "localhost").header(header::CONTENT_LENGTH, body.len());
        let request: Request<Body> = request.body(Body::from(body.to_vec())).expect("targets build valid requests");
        let asked = format!("{} {}", request.method(), request.uri());
        let answer = self.runtime.block_on(async {
            let response = self.router.clone().oneshot(request).await.unwrap_or_else(|never| match never {});
            let (head, body) = response.into_parts();
            let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
            let (location, media) = (text(header::LOCATION), text(header::CONTENT_TYPE));
            let body = to_bytes(body, usize::MAX).await.expect("an answer is whole");
            (Answer { status: head.status, location, body }, media)
        });
        check(&asked, &answer.0, answer.1.as_deref());
        answer.0
    }
}

fn check(asked: &str, answer: &Answer, media: Option<&str>) {
    let text = String::from_utf8_lossy(&answer.body);
    assert_ne!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{asked}: {text}");
    if answer.status.as_u16() >= 400 {
        assert_eq!(media, Some("application/problem+json"), "{asked}: {}: {text}", answer.status);
        let problem: serde_json::Value = serde_json::from_slice(&answer.body).expect("a problem is JSON");
        assert_eq!(problem["status"], answer.status.as_u16(), "{asked}: {text}");
        assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{asked}: {text}");
    }
}

async fn start() -> Router {
    let settings = settings();
    let metrics = MetricsExporter::install().expect("there is no other recorder");
    // No place for files of the Hub, so that nothing is fetched.
    let scorer = start_scorer(&settings, Hub::from_environment(|_| None)).expect("the scorer starts");
    let store = Store::open(None).await.expect("a store in memory opens");
    store.limit_memory(settings.store.memory.as_u64()).await.expect("its memory can be limited");
    let jobs = ServiceJobs::start(&JobKinds::all(), &scorer, &store, &settings).await.expect("the jobs start");
    scorer.engine().wait_until_loaded().await.expect("the models load");
    // Nobody asks for the metrics, and samples are kept until somebody does.
    tokio::spawn(metrics.clone().run_upkeep());
    api::router(ApiState::new(scorer, jobs.routed, metrics, &settings), &JobKinds::all())
}

/// One thread, and limits that a small input can reach.
fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.server.body_limit = size("16KiB");
    settings.server.request_timeout = Duration::from_secs(10);
    settings.engine.device = DeviceChoice::Cpu;
    settings.engine.threads = 1;
    settings.engine.max_batch_tokens = Some(512);
    settings.engine.cache = size("1MiB");
    settings.engine.default_model = Some("tiny".to_owned());
    settings.limits.inputs = 100;
    settings.limits.text = size("4KiB");
    settings.limits.dataset = size("64KiB");
    settings.store.memory = size("64MiB");
    let reference = model("reference", "gptneox-sequential", None);
    let masked = model("masked", "bert-mlm", None);
    settings.models = vec![model("tiny", "gptneox-parallel", Some("reference")), reference, masked];
    settings
}

fn size<T: std::str::FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().expect("a size")
}

fn model(id: &str, golden: &str, reference: Option<&str>) -> ModelSettings {
    let path = directory().join(golden);
    ModelSettings {
        id: id.to_owned(),
        source: ModelSource { text: path.display().to_string(), path },
        device: vec![DeviceChoice::Cpu],
        reference: reference.map(str::to_owned),
        ..ModelSettings::default()
    }
}
