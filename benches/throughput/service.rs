//! The service over HTTP, and the scorer as the command line runs it.

use anyhow::Result;
use candle_core::DType;
use futures::{StreamExt, TryStreamExt, stream};
use mia::methods::{Scope, parse_list, resolve};
use pdr_audit::api::{self, ApiState, JobKinds};
use pdr_audit::app::ServiceJobs;
use pdr_audit::config::{Overrides, ServerSettings, Settings};
use pdr_audit::scorer::{IN_FLIGHT, Input, Overflow, Plan, Scorer};
use pdr_audit::server::{ConnectionLimits, Listener};
use pdr_audit::store::Store;
use pdr_audit::telemetry::MetricsExporter;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const METHODS: &str = "loss,zlib,min_k,min_k_plus_plus";

/// Format in which texts are sent to the service.
#[derive(Clone, Copy)]
pub enum Workload {
    Http { clients: usize, texts: usize },
    Offline,
}

impl Workload {
    pub fn named(layer: &str) -> Option<Self> {
        match layer {
            "http" => Some(Self::Http { clients: 8, texts: 32 }),
            "clients" => Some(Self::Http { clients: 32, texts: 1 }),
            "alone" => Some(Self::Http { clients: 1, texts: 1 }),
            "offline" => Some(Self::Offline),
            _ => None,
        }
    }
}

pub struct Service {
    url: String,
    client: reqwest::Client,
    scorer: Scorer,
    plan: Plan,
    texts: Vec<String>,
}

impl Service {
    pub async fn start(model: &Path, texts: &[String], dtype: DType, device: &str) -> Result<Self> {
        let source = serde_json::to_string(&model.canonicalize()?)?;
        let dtype = if dtype == DType::BF16 { "bf16" } else { "f32" };
        let config = format!(
            "[engine]\ncache = 0\ndevice = \"{device}\"\ndtype = \"{dtype}\"\n[[models]]\nid = \"bench\"\nsource = {source}\n"
        );
        let file = PathBuf::from("bench.toml");
        let settings = Settings::from_sources(Some((&file, &config)), [], &Overrides::default())?;
        let metrics = MetricsExporter::install()?;
        let scorer = pdr_audit::app::start_scorer(&settings, pdr_audit::app::hub())?;
        scorer.engine().wait_until_loaded().await?;
        let (ids, model) = (scorer.pool().ids(), scorer.pool().find(None)?);
        let scope: Scope = scorer.scope(&ids, Some(&model), false, false);
        let methods = resolve(&parse_list(METHODS)?, &scope).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let (model, methods) = (model.id.clone(), methods.into());
        let plan = Plan { model, methods, overflow: Overflow::Error, tokens: false, splits: Arc::new([]) };
        let jobs = ServiceJobs::start(&JobKinds::all(), &scorer, &Store::open(None).await?, &settings).await?;
        let state = ApiState::new(scorer.clone(), jobs.routed, metrics, &settings);
        let ServerSettings { header_timeout, write_timeout, .. } = settings.server;
        let limits = ConnectionLimits { header_timeout, write_timeout, connections: 1_000, per_address: 1_000 };
        let listener = Listener::bind(("127.0.0.1", 0), limits, None).await?;
        let url = format!("http://{}/v1/score", listener.address()?);
        tokio::spawn(listener.serve(api::router(state, &JobKinds::all()), std::future::pending()));
        Ok(Self { url, client: reqwest::Client::new(), scorer, plan, texts: texts.to_vec() })
    }

    pub async fn run(&self, workload: Workload) -> Result<()> {
        match workload {
            Workload::Http { clients, texts } => self.post(clients, texts).await,
            Workload::Offline => self.score().await,
        }
    }

    async fn post(&self, clients: usize, texts: usize) -> Result<()> {
        let methods: Vec<&str> = METHODS.split(',').collect();
        let post = |texts: &[String]| {
            let body = json!({ "inputs": texts, "methods": methods });
            let request = self.client.post(&self.url).json(&body);
            async move { Ok::<_, anyhow::Error>(request.send().await?.error_for_status()?.bytes().await?) }
        };
        let answers = stream::iter(self.texts.chunks(texts).map(post)).buffer_unordered(clients);
        answers.try_for_each(|_| async { Ok(()) }).await
    }

    async fn score(&self) -> Result<()> {
        let bound = self.scorer.bind(&self.plan).await?;
        let score = |text: &String| {
            let (scorer, bound) = (&self.scorer, &bound);
            let input = Input { text: text.clone(), ..Input::default() };
            async move { Ok::<_, anyhow::Error>(scorer.score_behind(bound, input).await?) }
        };
        let scored = stream::iter(self.texts.iter().map(score)).buffered(IN_FLIGHT);
        scored.try_for_each(|_| async { Ok(()) }).await
    }
}
