//! Models in GGUF: every architecture and every type, from text to log-probabilities, against transformers on the values that
//! Python's `gguf` reads; see `tests/interop/make_gguf.py`.

use crate::common::goldens::{directory, numbers};
use candle_core::{DType, Device};
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::{GgufFiles, ModelFiles};
use lm::models::gguf::BlockType;
use lm::tokenizer::{self, Tokenizer, TokenizerError};
use safetensors::SafeTensors;
use serde_json::Value;
use std::path::PathBuf;
use strum::VariantArray;

/// f32 itself strays this far from f64 in models of this size, and our sums have another order than the reference's.
const TOLERANCE: f64 = 2e-5;

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

fn load(name: &str) -> Box<dyn CausalLm> {
    open(name).load(DType::F32, &Device::Cpu).unwrap().causal().unwrap()
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
        let (loaded, mut worst) = (load(name), 0f64);
        for text in model["texts"].as_array().unwrap() {
            let ids: Vec<u32> = serde_json::from_value(text["ids"].clone()).unwrap();
            let stats = loaded.token_stats(&[&ids]).unwrap().remove(0);
            let want = numbers(&text["logp"]);
            assert_eq!(stats.len(), want.len(), "{name}");
            for (got, want) in stats.iter().zip(want) {
                worst = worst.max((got.lp - want).abs());
            }
        }
        println!("{name}: {worst:.1e}");
        assert!(worst <= TOLERANCE, "{name}: off by {worst:e}");
    }
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
    for kind in BlockType::VARIANTS {
        let tensor = |part: &str| tensors.tensor(&format!("{}.{part}", kind.name())).unwrap().data().to_vec();
        let (blocks, want) = (tensor("blocks"), tensor("values"));
        assert_eq!((blocks.len() % kind.bytes(), want.len() % kind.elements()), (0, 0));
        let mut values = vec![0f32; want.len() / 4];
        kind.dequantize(&blocks, &mut values);
        let want: Vec<u32> = want.as_chunks().0.iter().map(|value| u32::from_le_bytes(*value)).collect();
        assert_eq!(values.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), want, "{}", kind.name());
    }
}

#[test]
fn a_file_says_what_it_is_quantised_to() {
    for (name, quantization) in [("mixed", Some("Q4_K_M")), ("qwen2", Some("Q8_0")), ("llama", None)] {
        assert_eq!(open(name).quantization(), quantization, "{name}");
    }
    assert_eq!(open("mistral").model_type(), "mistral");
}
