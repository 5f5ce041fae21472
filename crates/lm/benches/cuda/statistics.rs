//! The reduction of logits, and the scan of Mamba.

use crate::{RUNS, TYPES, VOCAB, random, seconds};
use anyhow::{Context, Result};
use candle_core::{DType, Device, Error, Tensor};
use kernels::scan::{ScanShape, TimeStep};
use lm::models::batch::PackedBatch;
use lm::models::cuda::{Columns, LogitRows, RowStatistics, Scan, ScanColumns, ScanPlaces, Scans};
use lm::models::logit_stats::{Head, logit_stats, plain_logit_stats};
use lm::models::ops::Weight;
use serde_json::{Value, json};

const WIDTH: usize = 768;
/// More rows of logits are not in memory at once.
const MOST_ROWS: usize = 4096;

/// Measures the reduction, beside a copy of `copied` gigabytes a second.
pub fn run(gpu: &Device, rows: usize, copied: f64, mut say: impl FnMut(Value)) -> Result<()> {
    let rows = rows.min(MOST_ROWS);
    let kernel = RowStatistics::new(gpu)?.context("the kernel did not compile")?;
    let product = (random(gpu, (rows, VOCAB), DType::F32)? * 3.0)?;
    let targets = Tensor::zeros(rows, DType::U32, gpu)?;
    let tile = LogitRows { product: &product, bias: None, soft_cap: None, targets: &targets, first: 0 };
    let took = seconds(gpu, RUNS, || kernel.reduce(&tile))?;
    let read = (rows * VOCAB * 4) as f64 / took / 1e9;
    say(json!({ "what": "statistics", "rows": rows, "gb_per_s": read, "share": read / copied }));
    for (name, dtype) in TYPES {
        let hidden = random(gpu, (rows, WIDTH), dtype)?;
        let weight = (random(gpu, (VOCAB, WIDTH), dtype)? * 0.1)?;
        let head = Head { weight: Weight::Plain(weight).into(), bias: None, soft_cap: None };
        let targets = vec![7u32; rows];
        let kernel = seconds(gpu, RUNS, || logit_stats(&hidden, &head, &targets).map_err(Error::wrap))?;
        let plain = seconds(gpu, RUNS, || plain_logit_stats(&hidden, &head, &targets).map_err(Error::wrap))?;
        let (kernel_ms, candle_ms) = (kernel * 1e3, plain * 1e3);
        say(json!({ "what": "head", "dtype": name, "rows": rows, "kernel_ms": kernel_ms, "candle_ms": candle_ms }));
    }
    Ok(())
}

/// Measures a scan of each generation of Mamba.
pub fn scans(gpu: &Device, mut say: impl FnMut(Value)) -> Result<()> {
    let mamba = ScanShape { heads: 1, head_dim: 1536, groups: 1, states: 16, time_step: TimeStep::PerChannel };
    let mamba2 = ScanShape { heads: 24, head_dim: 64, groups: 1, states: 128, time_step: TimeStep::PerHead };
    for (name, shape) in [("mamba", mamba), ("mamba2", mamba2)] {
        say(json!({ "what": "scan", "shape": name, "ms": scan(gpu, shape)? * 1e3 }));
    }
    Ok(())
}

fn scan(gpu: &Device, shape: ScanShape) -> Result<f64> {
    let ids = vec![0u32; 512];
    let batch = PackedBatch::new(&[ids.as_slice(); 16]);
    let columns = |columns: usize| random(gpu, (batch.ids.len(), columns), DType::F32);
    let (x, gate, time_steps) = (columns(shape.channels())?, columns(shape.channels())?, columns(shape.time_steps())?);
    let (b, c) = (columns(shape.mixing_width())?, columns(shape.mixing_width())?);
    let rates = if shape.time_step == TimeStep::PerHead { 1 } else { shape.states };
    let a = (Tensor::ones((rates, shape.time_steps()), DType::F32, gpu)? * -1.5)?;
    let (d, time_bias) = (columns(1)?, Tensor::zeros(shape.time_steps(), DType::F32, gpu)?);
    let d = d.flatten_all()?.narrow(0, 0, shape.time_steps())?;
    let all = |tensor| Columns { tensor, first: 0 };
    let input = ScanColumns { x: all(&x), gate: all(&gate), time_steps: all(&time_steps), b: all(&b), c: all(&c) };
    let learned = Scan { shape, a, d, time_bias, time_limit: (0.0, f64::INFINITY) };
    let kernel = Scans::new(gpu, shape)?.context("the kernel did not compile")?;
    let places = ScanPlaces::new(&batch, gpu)?;
    seconds(gpu, RUNS, || kernel.scan(&input, &learned, &places))
}
