//! Products of a layer.

use crate::{RUNS, random, seconds};
use anyhow::Result;
use candle_core::{DType, Device};
use lm::models::cuda::product;
use serde_json::{Value, json};

/// Inputs and outputs of the products of a layer of 6.9 billion parameters: queries, keys and values, the output of
/// attention, and both of the MLP.
const LAYER: [(usize, usize); 4] = [(4096, 12_288), (4096, 4096), (4096, 16_384), (16_384, 4096)];
/// A tile of the head, in f32.
const HEAD: (usize, usize) = (4096, 4096);

/// Measures each product of `rows` rows; gives the TFLOP/s of those of a layer together.
pub fn run(gpu: &Device, rows: usize, dtype: DType, mut say: impl FnMut(Value)) -> Result<f64> {
    let (mut flops, mut time) = (0.0, 0.0);
    for (place, (inputs, outputs)) in LAYER.into_iter().chain([HEAD]).enumerate() {
        let (x, weight) = (random(gpu, (rows, inputs), dtype)?, random(gpu, (outputs, inputs), dtype)?);
        let is_head = place == LAYER.len();
        let out = if is_head { DType::F32 } else { dtype };
        let took = seconds(gpu, RUNS, || product(&x, &weight, true, out))?;
        let of_product = 2.0 * rows as f64 * (inputs * outputs) as f64;
        if !is_head {
            (flops, time) = (flops + of_product, time + took);
        }
        say(json!({
            "what": "product", "rows": rows, "inputs": inputs, "outputs": outputs, "head": is_head,
            "ms": took * 1e3, "tflops": of_product / took / 1e12,
        }));
    }
    Ok(flops / time / 1e12)
}
