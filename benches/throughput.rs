//! Texts per second through the layers of the service, side by side in one process:
//!
//!     cargo bench --bench throughput -- MODEL_DIR TEXTS.jsonl [--limit N] [--rounds N] [--layers forward,http]
//!
//! `forward` runs the model alone over token ids that are ready, in batches of the engine's size; `gemm` does the same
//! without packed weights, `bf16` with products of bf16, and any of them after `single-` with one text in a batch. `http` posts the texts to a
//! server on a free port, from several clients at once, and so adds tokenizing, queue, methods and HTTP. The layers take
//! turns, so that a change of the machine's speed meets both. Each round of a layer prints one JSON line. The cache is off.

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device};
use pdr_audit::api::{self, ApiState};
use pdr_audit::config::{Overrides, Settings};
use pdr_audit::jobs::Audits;
use pdr_audit::models::CausalLm;
use pdr_audit::models::checkpoint::Checkpoint;
use pdr_audit::models::files::ModelFiles;
use pdr_audit::models::ops::{Form, Multiply};
use pdr_audit::telemetry::Metrics;
use pdr_audit::tokenizer::Tokenizer;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

/// The token budget of a batch, as the engine has it on the CPU.
const BUDGET: usize = 2_048;
/// Clients at once, and texts of a request.
const CLIENTS: usize = 8;
const TEXTS: usize = 32;
const METHODS: [&str; 4] = ["loss", "zlib", "min_k", "min_k_plus_plus"];

struct Options {
    model: PathBuf,
    texts: Vec<String>,
    rounds: usize,
    layers: Vec<String>,
}

impl Options {
    fn parse() -> Result<Self> {
        let (mut paths, mut limit, mut rounds, mut layers) = (Vec::new(), usize::MAX, 5, "forward,http".to_owned());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--limit" => limit = arguments.next().context("--limit N")?.parse()?,
                "--rounds" => rounds = arguments.next().context("--rounds N")?.parse()?,
                "--layers" => layers = arguments.next().context("--layers NAMES")?,
                // cargo bench adds it.
                "--bench" => {}
                _ => paths.push(argument),
            }
        }
        ensure!(paths.len() == 2, "usage: throughput MODEL_DIR TEXTS.jsonl [--limit N] [--rounds N] [--layers NAMES]");
        let lines = std::fs::read_to_string(&paths[1])?;
        let text = |line: &str| -> Result<String> {
            let value: Value = serde_json::from_str(line)?;
            value["text"].as_str().map(str::to_owned).context("a line has no `text`")
        };
        let texts = lines.lines().take(limit).map(text).collect::<Result<_>>()?;
        let layers = layers.split(',').map(str::to_owned).collect();
        Ok(Self { model: paths.swap_remove(0).into(), texts, rounds, layers })
    }
}

fn main() -> Result<()> {
    // `cargo test --benches` runs this without arguments; there is nothing to measure then.
    if std::env::args().len() == 1 || std::env::args().any(|a| a == "--test") {
        return Ok(());
    }
    let options = Options::parse()?;
    let runtime = tokio::runtime::Runtime::new()?;
    let mut forwards = Vec::new();
    for layer in options.layers.iter().filter(|layer| *layer != "http") {
        forwards.push((layer, Forward::new(&options, layer)?));
    }
    let server = runtime.block_on(Server::start(&options))?;
    let tokens = forwards.first().map_or(0, |(_, forward)| forward.tokens);
    for round in 0..=options.rounds {
        for layer in &options.layers {
            let start = Instant::now();
            match forwards.iter().find(|(name, _)| *name == layer) {
                Some((_, forward)) => forward.run()?,
                None => runtime.block_on(server.run())?,
            }
            let seconds = start.elapsed().as_secs_f64();
            // The first round warms up.
            if round > 0 {
                let (texts, tokens) = (options.texts.len() as f64 / seconds, tokens as f64 / seconds);
                println!("{}", json!({ "layer": layer, "texts_per_s": texts, "tokens_per_s": tokens }));
            }
        }
    }
    Ok(())
}

struct Forward {
    model: Box<dyn CausalLm>,
    batches: Vec<Vec<Vec<u32>>>,
    tokens: usize,
}

impl Forward {
    fn new(options: &Options, layer: &str) -> Result<Self> {
        let files = ModelFiles::Directory(options.model.clone());
        let tokenizer = Tokenizer::from_json(&files.open("tokenizer.json")?)?;
        let checkpoint = Checkpoint::open(&files)?;
        // Without room in a batch, every text is one of its own.
        let (kind, budget) = layer.strip_prefix("single-").map_or((layer, BUDGET), |kind| (kind, 0));
        let (form, dtype) = match kind {
            "forward" => (checkpoint.form(DType::F32, &Device::Cpu), DType::F32),
            "gemm" => (Form::Fused(Multiply::Gemm), DType::F32),
            "bf16" => (checkpoint.form(DType::BF16, &Device::Cpu), DType::BF16),
            other => anyhow::bail!("no layer is called {other}"),
        };
        let model = checkpoint.load_in(form, dtype, &Device::Cpu)?.causal().context("not a causal model")?;
        let (mut batches, mut room): (Vec<Vec<Vec<u32>>>, usize) = (Vec::new(), 0);
        let mut tokens = 0;
        for text in &options.texts {
            let ids = tokenizer.encode(text)?.ids.to_vec();
            tokens += ids.len();
            if room < ids.len() || batches.is_empty() {
                batches.push(Vec::new());
                room = budget;
            }
            room = room.saturating_sub(ids.len());
            if let Some(batch) = batches.last_mut() {
                batch.push(ids);
            }
        }
        Ok(Self { model, batches, tokens })
    }

    fn run(&self) -> Result<()> {
        for batch in &self.batches {
            let sequences: Vec<&[u32]> = batch.iter().map(Vec::as_slice).collect();
            self.model.token_stats(&sequences)?;
        }
        Ok(())
    }
}

struct Server {
    url: String,
    client: reqwest::Client,
    bodies: Vec<String>,
}

impl Server {
    async fn start(options: &Options) -> Result<Self> {
        let source = serde_json::to_string(&options.model.canonicalize()?)?;
        let config = format!("[engine]\ncache = 0\ndevice = \"cpu\"\n[[models]]\nid = \"bench\"\nsource = {source}\n");
        let file = PathBuf::from("bench.toml");
        let settings = Settings::from_sources(Some((&file, &config)), [], &Overrides::default())?;
        let metrics = Metrics::install()?;
        let scorer = pdr_audit::app::start_scorer(&settings, pdr_audit::app::hub())?;
        scorer.engine().wait_until_loaded().await?;
        let state = ApiState::new(scorer.clone(), Audits::new(scorer), metrics, &settings);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1/score", listener.local_addr()?);
        tokio::spawn(async move { axum::serve(listener, api::router(state)).await });
        let body = |texts: &[String]| json!({ "inputs": texts, "methods": METHODS }).to_string();
        let bodies = options.texts.chunks(TEXTS).map(body).collect();
        Ok(Self { url, client: reqwest::Client::new(), bodies })
    }

    async fn run(&self) -> Result<()> {
        use futures::{StreamExt, TryStreamExt, stream};
        let post = |body: &String| {
            let request = self.client.post(&self.url).header("content-type", "application/json").body(body.clone());
            async move { Ok::<_, anyhow::Error>(request.send().await?.error_for_status()?.bytes().await?) }
        };
        let answers = stream::iter(self.bodies.iter().map(post)).buffer_unordered(CLIENTS);
        answers.try_for_each(|_| async { Ok(()) }).await
    }
}
