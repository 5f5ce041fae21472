//! The forward pass of a GPT-NeoX of 6.9 billion parameters.

use anyhow::{Context, Result, bail};
use candle_core::{DType, Device, Tensor};
use lm::models::batch::PackedBatch;
use lm::models::decoder::Decoder;
use lm::models::families::{Network, read_config};
use lm::models::ops::Form;
use lm::models::{CausalLm, ModelError};
use serde_json::{Value, json};
use std::time::Instant;

/// Passes per measurement.
const PASSES: usize = 3;

/// Texts of a batch, as numbers and lengths.
const BATCHES: [(&str, &[(usize, usize)]); 5] = [
    ("one of 128", &[(1, 128)]),
    ("2,048 tokens of 128", &[(16, 128)]),
    ("16,384 tokens of 128", &[(128, 128)]),
    ("16,384 tokens of 2,048", &[(8, 2048)]),
    ("16,384 tokens of both", &[(64, 128), (4, 2048)]),
];

/// Measures passes of a model with `layers` layers, compared with products of `rate` TFLOP/s.
pub fn run(gpu: &Device, layers: usize, dtype: DType, rate: f64, mut say: impl FnMut(Value)) -> Result<()> {
    let config = json!({
        "model_type": "gpt_neox", "vocab_size": 50_432, "hidden_size": 4096, "num_hidden_layers": layers,
        "num_attention_heads": 32, "intermediate_size": 16_384, "max_position_embeddings": 2048, "rotary_pct": 0.25,
        "rotary_emb_base": 10_000, "layer_norm_eps": 1e-5, "use_parallel_residual": true, "hidden_act": "gelu",
        "tie_word_embeddings": false,
    });
    let description = read_config(config.as_object().context("an object")?)?;
    let Network::Decoder(arch, _) = description.network else { bail!("GPT-NeoX is a decoder") };
    let (sizes, vocab) = (arch.sizes, arch.sizes.vocab);
    let mut source = |name: &str, shape: &[usize]| -> Result<Tensor, ModelError> {
        let is_parameter = name.contains("norm") || name.ends_with(".bias");
        let (mean, deviation) = if name.ends_with("norm.weight") { (1f32, 0.05) } else { (0f32, 0.02) };
        let tensor = Tensor::randn(mean, deviation, shape, gpu)?;
        Ok(tensor.to_dtype(if is_parameter { DType::F32 } else { dtype })?)
    };
    let model = Decoder::new(arch, Form::Gpu(dtype), gpu, &mut source)?;
    let per_layer = sizes.hidden * (4 * sizes.hidden + 2 * sizes.inner);
    let flops_per_token = 2.0 * (layers * per_layer + sizes.hidden * vocab) as f64;
    for (name, texts) in BATCHES {
        let lengths = texts.iter().flat_map(|&(count, length)| std::iter::repeat_n(length, count));
        let ids: Vec<Vec<u32>> = lengths
            .enumerate()
            .map(|(i, n)| (0..n).map(|t| ((i * 7919 + t * 104_729) % vocab) as u32).collect())
            .collect();
        let batch: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        let tokens = ids.iter().map(Vec::len).sum::<usize>() as f64;
        let packed = PackedBatch::new(&batch);
        // The first pass compiles what is missing and fills the memory pool.
        model.token_stats(&batch)?;
        let started = Instant::now();
        let hidden = model.hidden(&packed, None)?;
        let queued = started.elapsed().as_secs_f64();
        gpu.synchronize()?;
        drop(hidden);
        let started = Instant::now();
        for _ in 0..PASSES {
            model.token_stats(&batch)?;
        }
        let took = started.elapsed().as_secs_f64() / PASSES as f64;
        // As the engine runs full batches: each begins before the one before it is waited for.
        let started = Instant::now();
        let mut last = model.begin(&batch, None)?;
        for _ in 1..PASSES {
            std::mem::replace(&mut last, model.begin(&batch, None)?).wait()?;
        }
        last.wait()?;
        let in_flight = started.elapsed().as_secs_f64() / PASSES as f64;
        let tflops = tokens * flops_per_token / took / 1e12;
        say(json!({
            "what": "forward", "layers": layers, "batch": name, "ms": took * 1e3, "queued_ms": queued * 1e3,
            "two_in_flight_ms": in_flight * 1e3,
            "tokens_per_s": tokens / took, "tflops": tflops, "share": tflops / rate,
        }));
    }
    Ok(())
}
