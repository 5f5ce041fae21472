//! The steps of a layer between its products.

use crate::{RUNS, random, seconds};
use anyhow::{Context, Result};
use candle_core::{DType, Device, Tensor};
use kernels::attention::{AttentionShape, Visibility};
use lm::models::arch::{Activation, NormKind};
use lm::models::cuda::{FlashAttention, QueryBlocks};
use lm::models::ops::{Form, Norm, Rotation, activate, gate};
use lm::models::rotary::{Rotary, RotaryTable};
use serde_json::{Value, json};

const HIDDEN: usize = 4096;
const INNER: usize = 16_384;
const SHAPE: AttentionShape =
    AttentionShape { heads: 32, kv_heads: 32, head_dim: 128, scale: 0.088_388, soft_cap: None };

/// Measures each step over `rows` rows, beside a copy of `copied` gigabytes a second.
pub fn run(gpu: &Device, rows: usize, dtype: DType, copied: f64, mut say: impl FnMut(Value)) -> Result<()> {
    let form = Form::Gpu(dtype);
    let element = dtype.size_in_bytes();
    // `flops` is 0 for steps that memory bounds.
    let mut line = |step: &str, took: f64, bytes: usize, flops: f64| {
        let rate = bytes as f64 / took / 1e9;
        say(json!({
            "what": "step", "step": step, "rows": rows, "ms": took * 1e3, "gb_per_s": rate, "share": rate / copied,
            "tflops": flops / took / 1e12,
        }));
    };

    let x = random(gpu, (rows, HIDDEN), DType::F32)?;
    let ones = Tensor::ones(HIDDEN, DType::F32, gpu)?;
    for (name, kind) in [("layer norm", NormKind::Layer), ("rms norm", NormKind::Rms)] {
        let bias = (kind == NormKind::Layer).then(|| ones.clone());
        let norm = Norm { weight: ones.clone(), bias, kind, eps: 1e-5 };
        let took = seconds(gpu, RUNS, || norm.forward(&x, form))?;
        line(name, took, rows * HIDDEN * (4 + element), 0.0);
    }

    let up = random(gpu, (rows, INNER), dtype)?;
    let took = seconds(gpu, RUNS, || activate(Activation::Gelu, up.clone(), form))?;
    line("gelu", took, rows * INNER * 2 * element, 0.0);
    let took = seconds(gpu, RUNS, || gate(Activation::Silu, &up, form))?;
    line("silu gate", took, rows * (INNER + INNER / 2) * element, 0.0);

    for length in [128, 2048] {
        let sequences: Vec<_> = (0..rows.div_ceil(length)).map(|i| i * length..rows.min((i + 1) * length)).collect();
        let positions: Vec<usize> = sequences.iter().flat_map(|s| 0..s.len()).collect();
        let qkv = random(gpu, (rows, SHAPE.qkv_width()), dtype)?;
        let bias = Tensor::zeros(SHAPE.qkv_width(), DType::F32, gpu)?;
        let table = RotaryTable::new(&Rotary::plain(32, 10_000.0)).rows(length);
        let rotation = Rotation::new(SHAPE, Some(table), positions, gpu)?;
        let took = seconds(gpu, RUNS, || rotation.rotate(&qkv, Some(&bias)))?;
        line(&format!("bias and rotation, texts of {length}"), took, rows * SHAPE.qkv_width() * 2 * element, 0.0);

        let kernel = FlashAttention::new(gpu, SHAPE.head_dim, dtype)?.context("there is no attention kernel")?;
        let blocks = QueryBlocks::new(&sequences, kernel.queries(), gpu)?;
        let took = seconds(gpu, RUNS, || kernel.attend(&qkv, &blocks, SHAPE, Visibility::Past))?;
        let scores: usize = sequences.iter().map(|s| s.len() * (s.len() + 1) / 2).sum();
        let flops = 4.0 * (scores * SHAPE.heads * SHAPE.head_dim) as f64;
        let bytes = rows * (SHAPE.qkv_width() + HIDDEN) * element;
        line(&format!("attention, texts of {length}"), took, bytes, flops);
    }
    Ok(())
}
