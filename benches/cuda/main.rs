//! Compares the GPU kernels with the memory bandwidth and with candle's operations:
//!
//!     cargo bench --features cuda --bench cuda -- [--rows 2048] [--rounds 7]
//!
//! Each line is a JSON object. `copy` copies within the device, and counts both the bytes read and the bytes written.
//! `statistics` reduces rows of 50,304 logits, and counts the bytes read; its share is relative to the rate of the copy
//! in the same round. `head` includes the product with the head, once with the kernel and once with candle's
//! operations. `scan` runs one layer of a small Mamba and of a small Mamba-2 over 16 sequences of 512 tokens.

use anyhow::{Context, Result, ensure};
use candle_core::{DType, Device, Tensor};
use pdr_audit::config::DeviceChoice as Wanted;
use pdr_audit::models::batch::PackedBatch;
use pdr_audit::models::cuda::{GpuScanInput, LogitRows, RowStatistics, ScanPlaces, Scans};
use pdr_audit::models::device::ComputeDevice;
use pdr_audit::models::kernels::scan::{ScanShape, TimeStep};
use pdr_audit::models::logit_stats::{Head, logit_stats, plain_logit_stats};
use pdr_audit::models::ops::Weight;
use serde_json::json;
use std::time::Instant;

const VOCAB: usize = 50_304;
const WIDTH: usize = 768;
/// Runs per measurement.
const RUNS: usize = 20;
const TYPES: [(&str, DType); 3] = [("bf16", DType::BF16), ("f16", DType::F16), ("f32", DType::F32)];

fn main() -> Result<()> {
    let (rows, rounds) = options()?;
    let gpu = ComputeDevice::open(Wanted::Cuda(0))?.device;
    for round in 0..rounds {
        let copied = copy(&gpu, rows)?;
        println!("{}", json!({ "round": round, "what": "copy", "gb_per_s": copied }));
        for (name, dtype) in TYPES {
            let read = statistics(&gpu, rows, dtype)?;
            let share = read / copied;
            let line = json!({ "round": round, "what": "statistics", "dtype": name, "rows": rows, "gb_per_s": read, "share": share });
            println!("{line}");
            let (kernel, plain) = head(&gpu, rows, dtype)?;
            let line = json!({ "round": round, "what": "head", "dtype": name, "kernel_ms": kernel * 1e3, "candle_ms": plain * 1e3, "ratio": plain / kernel });
            println!("{line}");
        }
        let mamba2 = |states| ScanShape { heads: 24, head_dim: 64, groups: 1, states, time_step: TimeStep::PerHead };
        let mamba = ScanShape { heads: 1, head_dim: 1536, groups: 1, states: 16, time_step: TimeStep::PerChannel };
        for (name, shape) in [("mamba", mamba), ("mamba2", mamba2(128))] {
            let seconds = scan(&gpu, shape)?;
            println!("{}", json!({ "round": round, "what": "scan", "shape": name, "ms": seconds * 1e3 }));
        }
    }
    Ok(())
}

fn options() -> Result<(usize, usize)> {
    let (mut rows, mut rounds) = (2048, 7);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rows" => rows = arguments.next().context("--rows N")?.parse()?,
            "--rounds" => rounds = arguments.next().context("--rounds N")?.parse()?,
            // Added by cargo bench.
            "--bench" => {}
            other => anyhow::bail!("{other} is not supported; supported: --rows, --rounds"),
        }
    }
    ensure!(rows > 0, "--rows 0");
    Ok((rows, rounds))
}

/// Seconds per run, over many runs queued one after another; the first one is not counted.
fn seconds<T>(gpu: &Device, mut run: impl FnMut() -> candle_core::Result<T>) -> Result<f64> {
    run()?;
    gpu.synchronize()?;
    let started = Instant::now();
    for _ in 0..RUNS {
        run()?;
    }
    gpu.synchronize()?;
    Ok(started.elapsed().as_secs_f64() / RUNS as f64)
}

fn copy(gpu: &Device, rows: usize) -> Result<f64> {
    let from = Tensor::zeros((rows, VOCAB), DType::F32, gpu)?;
    let took = seconds(gpu, || from.copy())?;
    Ok(2.0 * (rows * VOCAB * 4) as f64 / took / 1e9)
}

fn statistics(gpu: &Device, rows: usize, dtype: DType) -> Result<f64> {
    let kernel = RowStatistics::new(gpu, dtype)?.context("the kernel did not compile")?;
    let product = Tensor::randn(0f32, 3f32, (rows, VOCAB), gpu)?.to_dtype(dtype)?;
    let targets = Tensor::zeros(rows, DType::U32, gpu)?;
    let tile = LogitRows { product: &product, bias: None, soft_cap: None, targets: &targets, first: 0 };
    let took = seconds(gpu, || kernel.reduce(&tile))?;
    Ok((rows * VOCAB * dtype.size_in_bytes()) as f64 / took / 1e9)
}

/// Seconds with the kernel and with candle's operations.
fn head(gpu: &Device, rows: usize, dtype: DType) -> Result<(f64, f64)> {
    let random = |shape| Tensor::randn(0f32, 1f32, shape, gpu)?.to_dtype(dtype);
    let hidden = random((rows, WIDTH))?;
    let weight = (random((VOCAB, WIDTH))? * 0.1)?;
    let head = Head { weight: Weight::Plain(weight).into(), bias: None, soft_cap: None };
    let targets = vec![7u32; rows];
    let kernel = seconds(gpu, || logit_stats(&hidden, &head, &targets))?;
    let plain = seconds(gpu, || plain_logit_stats(&hidden, &head, &targets))?;
    Ok((kernel, plain))
}

fn scan(gpu: &Device, shape: ScanShape) -> Result<f64> {
    let ids = vec![0u32; 512];
    let batch = PackedBatch::new(&[ids.as_slice(); 16]);
    let random = |columns: usize| Tensor::randn(0f32, 1f32, (batch.ids.len(), columns), gpu);
    let (x, gate, time_steps) = (random(shape.channels())?, random(shape.channels())?, random(shape.time_steps())?);
    let (b, c) = (random(shape.mixing_width())?, random(shape.mixing_width())?);
    let rates = if shape.time_step == TimeStep::PerHead { 1 } else { shape.states };
    let a = (Tensor::ones((rates, shape.time_steps()), DType::F32, gpu)? * -1.5)?;
    let (d, time_bias) = (random(1)?, Tensor::zeros(shape.time_steps(), DType::F32, gpu)?);
    let d = d.flatten_all()?.narrow(0, 0, shape.time_steps())?;
    let input = GpuScanInput {
        x: (&x, 0),
        gate: (&gate, 0),
        time_steps: (&time_steps, 0),
        b: (&b, 0),
        c: (&c, 0),
        a: &a,
        d: &d,
        time_bias: &time_bias,
        time_limit: (0.0, f64::INFINITY),
    };
    let (kernel, places) =
        (Scans::new(gpu, shape)?.context("the kernel did not compile")?, ScanPlaces::new(&batch, gpu)?);
    seconds(gpu, || kernel.scan(&input, &places))
}
