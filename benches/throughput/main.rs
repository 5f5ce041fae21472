//! Texts per second through the layers of the service, side by side in one process:
//!
//!     cargo bench --bench throughput -- MODEL_DIR TEXTS.jsonl [--limit N] [--rounds N] [--dtype f32|bf16]
//!         [--layers NAMES] [--device cpu|cuda]
//!
//! | layer | what runs |
//! |---|---|
//! | `forward` | the model alone over prepared token ids, in batches of 2,048 tokens |
//! | `gemm` | the same without packed weights, in f32 |
//! | `single-forward`, `single-gemm` | the same with one text in a batch |
//! | `offline` | the scorer as `pdr-audit score` uses it: tokenizer, queue, forward passes and methods |
//! | `http` | texts posted to a server on a free port by several clients, 32 per request |
//! | `clients` | the same by 32 concurrent clients with one text per request |
//! | `alone` | the same by one client with one text per request: latency without load |
//! | `rate-kernel`, `rate-candle` | a large product with the kernel that `forward` uses, and with candle in f32, in GFLOP/s |
//!
//! The layers take turns, so that a change of the machine's speed affects all of them. Each round of a layer prints one
//! JSON line. The cache is disabled. The device is that of `offline`, `http`, `clients` and `alone`; the others run on the CPU.

mod forward;
mod rates;
mod service;

use anyhow::{Context, Result, ensure};
use candle_core::DType;
use forward::Forward;
use rates::Rate;
use serde_json::{Value, json};
use service::Service;
use std::path::PathBuf;
use std::time::Instant;

struct Options {
    model: PathBuf,
    texts: Vec<String>,
    rounds: usize,
    dtype: DType,
    layers: Vec<String>,
    device: String,
}

impl Options {
    fn parse() -> Result<Self> {
        let (mut paths, mut limit, mut rounds, mut layers) = (Vec::new(), usize::MAX, 5, "forward,http".to_owned());
        let (mut dtype, mut device) = (DType::F32, "cpu".to_owned());
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--limit" => limit = arguments.next().context("--limit N")?.parse()?,
                "--rounds" => rounds = arguments.next().context("--rounds N")?.parse()?,
                "--dtype" => dtype = arguments.next().context("--dtype f32|bf16")?.parse()?,
                "--layers" => layers = arguments.next().context("--layers NAMES")?,
                "--device" => device = arguments.next().context("--device cpu|cuda")?,
                // Added by cargo bench.
                "--bench" => {}
                _ => paths.push(argument),
            }
        }
        ensure!(matches!(dtype, DType::F32 | DType::BF16), "--dtype is f32 or bf16");
        ensure!(
            paths.len() == 2,
            "usage: throughput MODEL_DIR TEXTS.jsonl [--limit N] [--rounds N] [--dtype f32|bf16] [--layers NAMES] [--device cpu|cuda]"
        );
        let lines = std::fs::read_to_string(&paths[1])?;
        let text = |line: &str| -> Result<String> {
            let value: Value = serde_json::from_str(line)?;
            value["text"].as_str().map(str::to_owned).context("a line has no `text`")
        };
        let texts = lines.lines().take(limit).map(text).collect::<Result<_>>()?;
        let layers = layers.split(',').map(str::to_owned).collect();
        Ok(Self { model: paths.swap_remove(0).into(), texts, rounds, dtype, layers, device })
    }
}

/// What a layer measures.
enum Layer {
    Forward(Forward),
    Service(service::Workload),
    Rate(Rate),
}

impl Layer {
    fn new(name: &str, options: &Options) -> Result<Self> {
        Ok(match (name.strip_prefix("rate-"), service::Workload::named(name)) {
            (Some(rate), _) => Self::Rate(Rate::new(rate, &options.model, options.dtype)?),
            (None, Some(load)) => Self::Service(load),
            (None, None) => Self::Forward(Forward::new(name, &options.model, &options.texts, options.dtype)?),
        })
    }
}

fn main() -> Result<()> {
    // `cargo test --benches` runs this without arguments; there is nothing to measure then.
    if std::env::args().len() == 1 || std::env::args().any(|a| a == "--test") {
        return Ok(());
    }
    kernels::simd::force_from_environment().map_err(anyhow::Error::msg)?;
    let options = Options::parse()?;
    let tokens = forward::token_ids(&options.model, &options.texts)?.iter().map(Vec::len).sum::<usize>();
    let runtime = tokio::runtime::Runtime::new()?;
    let mut layers = Vec::new();
    for name in &options.layers {
        layers.push((name, Layer::new(name, &options)?));
    }
    let serves = layers.iter().any(|(_, layer)| matches!(layer, Layer::Service(_)));
    let service = serves
        .then(|| runtime.block_on(Service::start(&options.model, &options.texts, options.dtype, &options.device)));
    let service = service.transpose()?;
    for round in 0..=options.rounds {
        for (name, layer) in &layers {
            let start = Instant::now();
            let line = match (layer, &service) {
                (Layer::Rate(rate), _) => {
                    json!({ "layer": name, "path": rate.path().name(), "gflops": rate.measure()? })
                }
                (Layer::Forward(forward), _) => timed(name, start, &options, tokens, || forward.run())?,
                (Layer::Service(load), Some(service)) => {
                    timed(name, start, &options, tokens, || runtime.block_on(service.run(*load)))?
                }
                (Layer::Service(_), None) => continue,
            };
            // The first round warms up.
            if round > 0 {
                println!("{line}");
            }
        }
    }
    Ok(())
}

fn timed(
    name: &str,
    start: Instant,
    options: &Options,
    tokens: usize,
    run: impl FnOnce() -> Result<()>,
) -> Result<Value> {
    run()?;
    let seconds = start.elapsed().as_secs_f64();
    let (texts, tokens) = (options.texts.len() as f64 / seconds, tokens as f64 / seconds);
    Ok(json!({ "layer": name, "texts_per_s": texts, "tokens_per_s": tokens }))
}
