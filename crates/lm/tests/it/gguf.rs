//! Models in GGUF: every architecture and every type, from text to log-probabilities, against transformers on the values that
//! Python's `gguf` reads; see `tests/interop/make_gguf.py`.

use crate::common::goldens::{directory, numbers};
use candle_core::{DType, Device};
use kernels::packed::{BlockFormat, Isa, Products};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::{GgufFiles, ModelFiles};
use lm::models::gguf::BlockType;
use lm::models::layers::LayerPlacement;
use lm::models::ops::{Form, Multiply};
use lm::tokenizer::{self, Tokenizer, TokenizerError};
use safetensors::SafeTensors;
use serde_json::Value;
use std::path::PathBuf;
use strum::VariantArray;

/// Logits of the reference are in f32, whose sums in another order differ by up to 1.6e-5 here, most in Gemma.
const TOLERANCE: f64 = 5e-5;

fn fixtures() -> PathBuf {
    directory("").parent().unwrap().join("gguf")
}

fn files(name: &str) -> ModelFiles {
    let (among, name) = (ModelFiles::Directory(fixtures()), format!("{name}.gguf"));
    ModelFiles::Gguf(Box::new(GgufFiles { among, name, tokenizer: None }))
}

fn open(name: &str) -> Checkpoint {
    Checkpoint::open(&files(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every form that this machine has: those of the CPU keep blocks of some types, and the plain one none.
fn forms() -> Vec<Form> {
    let packed = Isa::available(Products::F32).into_iter().map(|isa| Form::Fused(Multiply::Packed(Products::F32, isa)));
    packed.chain([Form::Fused(Multiply::Gemm), Form::Plain]).collect()
}

fn expected() -> Value {
    serde_json::from_slice(&std::fs::read(fixtures().join("expected.json")).unwrap()).unwrap()
}

fn own_tokenizer(name: &str) -> Tokenizer {
    let find = |file: &'static str| Ok::<_, TokenizerError>(files(name).find(file).unwrap());
    tokenizer::from_files(find).unwrap().0
}

#[test]
fn log_probabilities_are_those_of_transformers_on_the_dequantised_weights() {
    for (name, model) in expected()["models"].as_object().unwrap() {
        let (checkpoint, mut worst) = (open(name), 0f64);
        for form in forms() {
            let loaded = checkpoint.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap();
            for text in model["texts"].as_array().unwrap() {
                let ids: Vec<u32> = serde_json::from_value(text["ids"].clone()).unwrap();
                let stats = loaded.token_stats(&[&ids]).unwrap().remove(0);
                let want = numbers(&text["logp"]);
                assert_eq!(stats.len(), want.len(), "{name}");
                let errors = stats.iter().zip(want).map(|(got, want)| (got.lp - want).abs());
                worst = errors.fold(worst, f64::max);
            }
            assert!(worst <= TOLERANCE, "{name}: off by {worst:e} in {form:?}");
        }
        println!("{name}: {worst:.1e}");
    }
}

#[test]
fn weights_are_rounded_to_a_half_type_that_is_asked_for() {
    let expected = expected();
    let text = &expected["models"]["llama"]["texts"][0];
    let (ids, want): (Vec<u32>, _) = (serde_json::from_value(text["ids"].clone()).unwrap(), numbers(&text["logp"]));
    for dtype in [DType::BF16, DType::F16] {
        let loaded = open("llama").load(dtype, &Device::Cpu).unwrap().causal().unwrap();
        let stats = loaded.token_stats(&[&ids]).unwrap().remove(0);
        let errors = stats.iter().zip(&want).map(|(got, want)| (got.lp - want).abs());
        // As in the tests of checkpoints in half types.
        assert!(errors.fold(0.0, f64::max) < 0.5, "{dtype:?}");
    }
}

/// Weights that the kernels multiply in blocks take about as much memory as in the file.
#[test]
fn weights_that_stay_in_blocks_are_counted_as_such() {
    let form = Form::Fused(Multiply::Packed(Products::F32, Isa::Scalar));
    for name in ["qwen2", "gptneox", "gemma2"] {
        let checkpoint = open(name);
        let elements = |name| checkpoint.weights.shape(name).unwrap().iter().product::<usize>();
        let elements: usize = checkpoint.weights.names().map(elements).sum();
        let [blocks, plain] =
            [form, Form::Plain].map(|form| checkpoint.weight_bytes(form, DType::F32, LayerPlacement::Resident));
        assert_eq!(plain, 4 * elements as u64, "{name}");
        let per_element = blocks as f64 / elements as f64;
        // Panels of 48 columns are padded, which counts in models as small as these, and norms are in f32.
        assert!((1.06..1.8).contains(&per_element), "{name}: {per_element}");
    }
}

#[test]
fn a_digest_is_that_of_the_file() {
    let digest = open("gpt2").digest().unwrap();
    assert_eq!(digest, lm::models::files::digest(&std::fs::read(fixtures().join("gpt2.gguf")).unwrap()));
}

/// The tokenizer of another directory takes the place of that in the file.
#[test]
fn a_tokenizer_may_come_from_elsewhere() {
    let other = ModelFiles::Directory(directory("qwen2"));
    let ModelFiles::Gguf(mut gguf) = files("gpt2") else { panic!("a GGUF file") };
    gguf.tokenizer = Some(other.clone());
    let files = ModelFiles::Gguf(gguf);
    let json = |files: &ModelFiles| files.open("tokenizer.json").unwrap().to_vec();
    assert_eq!(json(&files), json(&other));
    assert!(files.stamp().is_ok() && Checkpoint::open(&files).is_ok());
}

#[test]
fn adapters_and_tuning_are_refused() {
    let said = open("llama").differentiable(&Device::Cpu).err().unwrap().to_string();
    assert!(said.contains("models in GGUF take no adapters"), "{said}");
}

#[test]
fn the_tokenizer_in_a_file_gives_the_ids_of_the_original() {
    for (name, model) in expected()["models"].as_object().unwrap() {
        let tokenizer = own_tokenizer(name);
        for text in model["texts"].as_array().unwrap() {
            let ids = tokenizer.encode(text["text"].as_str().unwrap()).unwrap().ids;
            assert_eq!(serde_json::json!(ids.to_vec()), text["ids"], "{name}: {}", text["text"]);
        }
    }
}

#[test]
fn blocks_of_every_type_have_the_bits_of_the_reference() {
    let file = std::fs::read(fixtures().join("blocks.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let check = |name: &str, dequantise: &dyn Fn(&[u8], &mut [f32])| {
        let tensor = |part: &str| tensors.tensor(&format!("{name}.{part}")).unwrap().data();
        let want: Vec<u32> = tensor("values").as_chunks().0.iter().map(|value| u32::from_le_bytes(*value)).collect();
        let mut values = vec![0f32; want.len()];
        dequantise(tensor("blocks"), &mut values);
        assert_eq!(values.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), want, "{name}");
    };
    BlockFormat::VARIANTS.iter().for_each(|format| check(format.name(), &|b, out| format.dequantise_column(b, out)));
    BlockType::VARIANTS.iter().for_each(|kind| check(kind.name(), &|b, out| kind.dequantise(b, out)));
}

#[test]
fn a_file_says_what_it_is_quantised_to() {
    for (name, quantization) in [("mixed", Some("Q4_K_M")), ("qwen2", Some("Q8_0")), ("llama", None)] {
        assert_eq!(open(name).quantization(), quantization, "{name}");
    }
    assert_eq!(open("mistral").model_type(), "mistral");
}
