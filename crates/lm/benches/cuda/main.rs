//! Throughput of a GPU, and how near it is to its limits:
//!
//!     cargo bench --features cuda --bench cuda -- [--rows 16384] [--rounds 3] [--layers 32]
//!         [--only copy,product,step,statistics,scan,forward]
//!
//! Each line is a JSON object.
//!
//! - `copy` copies within the device, and counts both the bytes read and the bytes written.
//! - `product` multiplies by the weights of a layer of 6.9 billion parameters and by its head, with cuBLAS.
//! - `step` runs one kernel of a layer over that many rows; its `share` is of the copy's rate, by the bytes that it has
//!   to read and write, and attention has TFLOP/s by the scores that are visible.
//! - `statistics` reduces rows of 50,304 logits, and `head` includes the product with the head, once with the kernel
//!   and once with candle's operations.
//! - `scan` runs one layer of a small Mamba and of a small Mamba-2 over 16 sequences of 512 tokens.
//! - `forward` runs a GPT-NeoX of 6.9 billion parameters with random weights, made on the device, over texts of 128
//!   tokens, of 2,048 and of both; `queued_ms` is how long the host takes to queue it, `two_in_flight_ms`
//!   how long a pass takes where the next one is queued meanwhile, and its `share` is of the rate of the products above by
//!   the products with weights alone. `--layers` makes it smaller.

mod forward;
mod products;
mod statistics;
mod steps;

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use lm::models::device::{ComputeDevice, DeviceChoice};
use serde_json::{Value, json};
use std::time::Instant;

const VOCAB: usize = 50_304;
/// Runs per measurement.
const RUNS: usize = 20;
const TYPES: [(&str, DType); 2] = [("bf16", DType::BF16), ("f16", DType::F16)];

struct Options {
    rows: usize,
    rounds: usize,
    layers: usize,
    only: Option<Vec<String>>,
}

impl Options {
    fn wants(&self, what: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.iter().any(|name| name == what))
    }
}

fn main() -> Result<()> {
    let options = options()?;
    let gpu = ComputeDevice::open(DeviceChoice::Cuda(0))?;
    say(0, &json!({ "what": "device", "name": gpu.hardware(), "free_bytes": gpu.memory }));
    let gpu = gpu.device;
    for round in 0..options.rounds {
        let copied = copy(&gpu, options.rows)?;
        say(round, &json!({ "what": "copy", "gb_per_s": copied }));
        for (name, dtype) in TYPES {
            // The rate of all products of a layer, which the forward pass is compared with.
            let rate = products::run(&gpu, options.rows, dtype, |mut line| {
                line["dtype"] = name.into();
                if options.wants("product") {
                    say(round, &line);
                }
            })?;
            if options.wants("step") {
                steps::run(&gpu, options.rows, dtype, copied, |mut line| {
                    line["dtype"] = name.into();
                    say(round, &line);
                })?;
            }
            if options.wants("forward") {
                forward::run(&gpu, options.layers, dtype, rate, |mut line| {
                    line["dtype"] = name.into();
                    say(round, &line);
                })?;
            }
        }
        if options.wants("statistics") {
            statistics::run(&gpu, options.rows, copied, |line| say(round, &line))?;
        }
        if options.wants("scan") {
            statistics::scans(&gpu, |line| say(round, &line))?;
        }
    }
    Ok(())
}

fn say(round: usize, line: &Value) {
    let mut line = line.clone();
    line["round"] = round.into();
    println!("{line}");
}

fn options() -> Result<Options> {
    let mut options = Options { rows: 16_384, rounds: 3, layers: 32, only: None };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} lacks its value"));
        match argument.as_str() {
            "--rows" => options.rows = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--layers" => options.layers = value()?.parse()?,
            "--only" => options.only = Some(value()?.split(',').map(str::to_owned).collect()),
            // Added by cargo bench.
            "--bench" => {}
            other => anyhow::bail!("{other} is not supported; supported: --rows, --rounds, --layers, --only"),
        }
    }
    ensure!(options.rows > 0 && options.layers > 0, "--rows and --layers are at least 1");
    Ok(options)
}

/// Seconds per run, over many runs queued one after another; the first one is not counted.
fn seconds<T>(gpu: &Device, runs: usize, mut run: impl FnMut() -> candle_core::Result<T>) -> Result<f64> {
    run()?;
    gpu.synchronize()?;
    let started = Instant::now();
    for _ in 0..runs {
        run()?;
    }
    gpu.synchronize()?;
    Ok(started.elapsed().as_secs_f64() / runs as f64)
}

fn random(gpu: &Device, shape: (usize, usize), dtype: DType) -> candle_core::Result<Tensor> {
    Tensor::randn(0f32, 1f32, shape, gpu)?.to_dtype(dtype)
}

/// Gigabytes a second.
fn copy(gpu: &Device, rows: usize) -> Result<f64> {
    let from = Tensor::zeros((rows, VOCAB / 4), DType::F32, gpu)?;
    let took = seconds(gpu, RUNS, || from.copy())?;
    Ok(2.0 * (rows * (VOCAB / 4) * 4) as f64 / took / 1e9)
}
