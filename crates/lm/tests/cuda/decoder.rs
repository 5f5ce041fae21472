//! Decoders with random weights at sizes that meet the tiles of the kernels, against the CPU.

use crate::columns::bits;
use crate::{gpu, noise};
use candle_core::{DType, Device, Tensor};
use lm::models::decoder::Decoder;
use lm::models::families::{Network, read_config};
use lm::models::ops::{Form, Multiply};
use lm::models::{CausalLm, ModelError};
use mia::TokenStats;
use serde_json::{Value, json};

const VOCAB: usize = 50_304;
/// Around the sizes of tiles; one text alone is longer than a block of queries.
const LENGTHS: [usize; 7] = [300, 2, 64, 65, 129, 17, 256];

fn configs() -> Vec<(&'static str, Value)> {
    let neox = |hidden: usize, heads: usize| {
        json!({
            "model_type": "gpt_neox", "vocab_size": VOCAB, "hidden_size": hidden, "num_hidden_layers": 2,
            "num_attention_heads": heads, "intermediate_size": 4 * hidden, "max_position_embeddings": 512,
            "rotary_pct": 0.25, "rotary_emb_base": 10_000, "layer_norm_eps": 1e-5, "use_parallel_residual": true,
            "hidden_act": "gelu", "tie_word_embeddings": false,
        })
    };
    let llama = json!({
        "model_type": "llama", "vocab_size": VOCAB, "hidden_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
        "num_key_value_heads": 1, "intermediate_size": 1408, "max_position_embeddings": 512, "rms_norm_eps": 1e-5,
        "rope_theta": 10_000.0, "hidden_act": "silu", "tie_word_embeddings": false,
    });
    vec![("heads of 64", neox(256, 4)), ("heads of 80", neox(320, 4)), ("heads of 128, shared", llama)]
}

/// With weights that a half type holds exactly, so that its numbers are those of the same model.
fn random(config: &Value, form: Form, dtype: DType, device: &Device) -> Decoder {
    let Network::Decoder(arch, _) = read_config(config.as_object().unwrap()).unwrap().network else { panic!() };
    let mut seed = 0;
    let mut source = |name: &str, shape: &[usize]| -> Result<Tensor, ModelError> {
        seed += 1;
        let (centre, scale) = if name.ends_with("norm.weight") { (1.0, 0.25) } else { (0.0, 0.06) };
        let rounded = |x: f32| half::bf16::from_f32(centre + x).to_f32();
        let values = noise(shape.iter().product(), scale, seed).into_iter().map(rounded).collect();
        let tensor = Tensor::from_vec::<_, f32>(values, shape, device)?;
        let keeps_f32 = name.contains("norm") || matches!(form, Form::Gpu(_)) && name.ends_with(".bias");
        Ok(if keeps_f32 { tensor } else { tensor.to_dtype(dtype)? })
    };
    Decoder::new(arch, form, device, &mut source).unwrap()
}

fn sequences() -> Vec<Vec<u32>> {
    let id = |i: usize, t: usize| ((i * 7919 + t * 104_729 + t * t * 31 + 17) % VOCAB) as u32;
    LENGTHS.iter().enumerate().map(|(i, &length)| (0..length).map(|t| id(i, t)).collect()).collect()
}

fn stats(model: &Decoder) -> Vec<TokenStats> {
    let sequences = sequences();
    model.token_stats(&sequences.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap().concat()
}

#[test]
fn statistics_are_those_of_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for (name, config) in configs() {
        let cpu = stats(&random(&config, Form::Fused(Multiply::Gemm), DType::F32, &Device::Cpu));
        // Two layers round about as much as those of the goldens, whose bounds these are.
        for (dtype, most) in [(DType::F32, 2e-4), (DType::F16, 0.09), (DType::BF16, 0.36)] {
            for form in [Form::Gpu(dtype), Form::Plain] {
                let got = stats(&random(&config, form, dtype, &gpu));
                let errors = got.iter().zip(&cpu).map(|(got, want)| (got.lp - want.lp).abs());
                // `max` would drop a NaN.
                let worst =
                    errors.fold(0.0, |worst: f64, error| if worst.is_nan() || error <= worst { worst } else { error });
                println!("{name} in {form:?}, {dtype:?}: worst error of a log-probability {worst:.1e}");
                assert!(worst <= most, "{name} in {form:?}, {dtype:?}: {worst}");
            }
        }
    }
}

/// The second batch is queued, over memory that the first one freed, before the first one is waited for.
#[test]
fn two_batches_in_flight_have_the_results_of_each_alone() {
    let Some(gpu) = gpu() else { return };
    let (_, config) = configs().remove(0);
    let model = random(&config, Form::Gpu(DType::BF16), DType::BF16, &gpu);
    let sequences = sequences();
    let batches: Vec<Vec<&[u32]>> = sequences.iter().map(|ids| vec![ids.as_slice(); 3]).collect();
    let alone: Vec<_> = batches.iter().map(|batch| bits(&model.token_stats(batch).unwrap().concat())).collect();
    let mut last = model.begin(&batches[0], None).unwrap();
    let mut together = Vec::new();
    for batch in &batches[1..] {
        let before = std::mem::replace(&mut last, model.begin(batch, None).unwrap());
        assert!(!before.is_ready());
        together.push(bits(&before.wait().unwrap().concat()));
    }
    together.push(bits(&last.wait().unwrap().concat()));
    assert!(alone == together);
}

/// Memory that was queued and freed is given back when the last model goes.
#[test]
fn memory_comes_back_when_a_model_goes() {
    let Some(gpu) = gpu() else { return };
    let free = || {
        lm::models::cuda::trim_memory(&gpu).unwrap();
        lm::models::cuda::free_memory(&gpu).unwrap()
    };
    let (_, config) = configs().remove(0);
    // Kernels and the workspace of cuBLAS stay.
    stats(&random(&config, Form::Gpu(DType::BF16), DType::BF16, &gpu));
    let before = free();
    let model = random(&config, Form::Gpu(DType::BF16), DType::BF16, &gpu);
    stats(&model);
    assert!(free() < before);
    drop(model);
    let after = free();
    assert!(after + (64 << 20) >= before, "{before} bytes were free, and now {after}");
}

#[test]
fn a_batch_that_does_not_fit_is_said_to_be_out_of_memory_and_the_next_one_runs() {
    let Some(gpu) = gpu() else { return };
    let (_, config) = configs().remove(0);
    let model = random(&config, Form::Gpu(DType::BF16), DType::BF16, &gpu);
    let want = stats(&model);
    lm::models::cuda::trim_memory(&gpu).unwrap();
    let free = lm::models::cuda::free_memory(&gpu).unwrap();
    // All but 256 MiB; a tile of the logits of this batch takes 0.8 GB.
    let taken = Tensor::zeros((free as usize).saturating_sub(256 << 20), DType::U8, &gpu).unwrap();
    let ids = vec![1u32; 500];
    let batch = vec![ids.as_slice(); 400];
    let error = model.token_stats(&batch).unwrap_err();
    assert!(matches!(error, ModelError::OutOfMemory(_)), "{error}");
    drop(taken);
    let again = stats(&model);
    assert_eq!(
        want.iter().map(|s| s.lp.to_bits()).collect::<Vec<_>>(),
        again.iter().map(|s| s.lp.to_bits()).collect::<Vec<_>>()
    );
}
