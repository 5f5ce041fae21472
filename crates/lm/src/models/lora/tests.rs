//! Adapters against what PEFT says of them, and what is refused.

use super::*;
use crate::models::checkpoint::Checkpoint;
use crate::models::error::ModelError;
use crate::models::families::Network;
use crate::models::files::ModelFiles;
use crate::models::ops::{Form, Multiply};
use candle_core::{DType, Device, Tensor};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The goldens that have an adapter.
const ADAPTED: [&str; 6] = ["gptneox-parallel", "llama-gqa", "opt-pre", "gptj", "gpt_neo", "gpt2"];

fn directory(golden: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/goldens").join(golden)
}

/// The adapter of a golden.
fn saved(golden: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/lora").join(golden)
}

fn base(golden: &str) -> Checkpoint {
    Checkpoint::open(&ModelFiles::Directory(directory(golden))).unwrap()
}

fn open(base: &Checkpoint, adapter: &Path) -> Result<Adapter, ModelError> {
    base.adapter(&ModelFiles::Directory(adapter.to_owned()))
}

/// Ids and log-probabilities of the texts of a golden.
fn expected(golden: &str) -> Vec<(Vec<u32>, Vec<f64>)> {
    let json = fs::read(saved(golden).join("expected.json")).unwrap();
    let value: Value = serde_json::from_slice(&json).unwrap();
    let text = |text: &Value| {
        let ids = text["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect();
        let lp = text["logp"].as_array().unwrap().iter().map(|lp| lp.as_f64().unwrap()).collect();
        (ids, lp)
    };
    value["texts"].as_array().unwrap().iter().map(text).collect()
}

/// A copy of a golden's adapter whose settings were changed.
fn changed(golden: &str, change: impl FnOnce(&mut Value)) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in ["adapter_config.json", "adapter_model.safetensors"] {
        fs::copy(saved(golden).join(file), copy.path().join(file)).unwrap();
    }
    let path = copy.path().join("adapter_config.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    change(&mut settings);
    fs::write(&path, settings.to_string()).unwrap();
    copy
}

#[test]
fn log_probabilities_are_those_of_peft() {
    for golden in ADAPTED {
        let base = base(golden);
        let adapter = open(&base, &saved(golden)).unwrap();
        let chosen = base.form(DType::F32, &Device::Cpu).unwrap();
        for form in [chosen, Form::Fused(Multiply::Gemm), Form::Gpu(DType::F32), Form::Plain] {
            let model = base.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap();
            let loaded = model.load_adapter(&adapter).unwrap();
            let texts = expected(golden);
            let ids: Vec<&[u32]> = texts.iter().map(|(ids, _)| ids.as_slice()).collect();
            let stats = model.adapted_stats(&ids, &loaded).unwrap();
            let plain = model.token_stats(&ids).unwrap();
            let pairs = || texts.iter().zip(&stats).flat_map(|((_, lp), stats)| lp.iter().zip(stats));
            assert!(
                texts.iter().zip(&stats).all(|((_, lp), stats)| lp.len() == stats.len()),
                "{golden}: other lengths"
            );
            let worst = pairs().map(|(lp, stats)| (lp - stats.lp).abs()).fold(0.0, f64::max);
            // f32 forward passes differ from one in f64 by up to 1.2e-5 in these models without an adapter.
            assert!(worst < 2e-4, "{golden} {form:?}: {worst}");
            assert_ne!(plain, stats, "{golden}: the adapter changes nothing");
        }
    }
}

#[test]
fn a_text_has_the_same_bits_alone_and_in_a_batch() {
    let base = base("llama-gqa");
    let adapter = open(&base, &saved("llama-gqa")).unwrap();
    let model = base.load(DType::F32, &Device::Cpu).unwrap().causal().unwrap();
    let loaded = model.load_adapter(&adapter).unwrap();
    let texts = expected("llama-gqa");
    let ids: Vec<&[u32]> = texts.iter().map(|(ids, _)| ids.as_slice()).collect();
    let together = model.adapted_stats(&ids, &loaded).unwrap();
    for (ids, stats) in ids.iter().zip(together) {
        assert_eq!(model.adapted_stats(&[ids], &loaded).unwrap(), [stats]);
    }
}

#[test]
fn what_is_written_is_read_back_bit_for_bit() {
    for golden in ADAPTED {
        let base = base(golden);
        let Network::Decoder(arch, storage) = &base.description.network else { panic!("a decoder") };
        let modules = target_modules(arch, storage, &base.weights);
        let chosen = select(&modules, &default_targets(&modules)).unwrap();
        let matrix = |rows: usize, columns: usize, salt: usize| {
            let values = (0..rows * columns).map(|i| ((i * 31 + salt) % 17) as f32 / 100.0).collect::<Vec<_>>();
            Tensor::from_vec(values, (rows, columns), &Device::Cpu).unwrap()
        };
        let tensors: Vec<_> =
            chosen.iter().map(|module| (matrix(3, module.inputs, 1), matrix(module.rows.len(), 3, 2))).collect();
        let with: Vec<_> = chosen.iter().zip(&tensors).map(|(module, (down, up))| (module, down, up)).collect();
        let config = PeftConfig {
            rank: 3,
            alpha: 6.0,
            dropout: 0.05,
            target_modules: default_targets(&modules),
            has_all_layers: true,
            rank_stabilized: false,
            base: Some("somewhere".into()),
            revision: Some("main".into()),
        };
        let files = save(&config, golden == "gpt2", &with).unwrap();
        let copy = tempfile::tempdir().unwrap();
        for (name, content) in &files {
            fs::write(copy.path().join(name), content).unwrap();
        }
        let adapter = open(&base, copy.path()).unwrap();
        assert_eq!(adapter.config, config, "{golden}");
        assert_eq!(adapter.digest, adapter_digest(&files[0].1, &files[1].1));
        // The tensors themselves, by what they do to a text.
        let stored =
            candle_core::safetensors::load(copy.path().join("adapter_model.safetensors"), &Device::Cpu).unwrap();
        for (module, (down, up)) in chosen.iter().zip(&tensors) {
            for (kind, tensor) in [("lora_A", down), ("lora_B", up)] {
                let name = format!("base_model.model.{}.{kind}.weight", module.name());
                let values = |t: &Tensor| t.flatten_all().unwrap().to_vec1::<f32>().unwrap();
                assert_eq!(values(&stored[&name]), values(tensor), "{golden} {name}");
            }
        }
        let elements: usize = tensors.iter().map(|(down, up)| down.elem_count() + up.elem_count()).sum();
        assert_eq!(adapter.bytes, 4 * elements as u64);
    }
}

#[test]
fn default_targets_are_those_of_peft() {
    for golden in ADAPTED {
        let base = base(golden);
        let Network::Decoder(arch, storage) = &base.description.network else { panic!("a decoder") };
        let mut targets = default_targets(&target_modules(arch, storage, &base.weights));
        let mut saved = open(&base, &saved(golden)).unwrap().config.target_modules;
        targets.sort();
        saved.sort();
        assert_eq!(targets, saved, "{golden}");
    }
}

#[test]
fn settings_that_change_the_numbers_are_refused_by_name() {
    let base = base("llama-gqa");
    let cases: &[(&str, Value, &str)] = &[
        ("use_dora", json!(true), "key `use_dora`: DoRA is not supported"),
        ("bias", json!("all"), "key `bias`: trained biases (`all`) are not supported"),
        ("modules_to_save", json!(["lm_head"]), "key `modules_to_save`: modules that are trained as a whole"),
        ("rank_pattern", json!({ "q_proj": 8 }), "key `rank_pattern`: a rank for each module is not supported"),
        ("peft_type", json!("IA3"), "key `peft_type`: \"IA3\" is not supported"),
        ("init_lora_weights", json!("pissa"), "key `init_lora_weights`: `pissa` changes the base"),
        ("r", json!(0), "key `r`: expected a number above 0, got 0"),
        ("r", json!(2.5), "key `r`: expected a whole number above 0, got 2.5"),
        ("lora_alpha", json!("much"), "key `lora_alpha`: expected a number above 0"),
        ("use_something_new", json!(true), "key `use_something_new`: true is not understood"),
        ("r", json!(5), "but the base and the rank require"),
    ];
    for (key, value, message) in cases {
        let copy = changed("llama-gqa", |settings| settings[*key] = value.clone());
        let refusal = open(&base, copy.path()).unwrap_err().to_string();
        assert!(refusal.contains(message), "{key}: {refusal}");
    }
    let copy = changed("llama-gqa", |settings| settings["use_rslora"] = json!(true));
    assert_eq!(open(&base, copy.path()).unwrap().config.scale(), 4.0, "8 / sqrt(4)");
}

#[test]
fn every_module_that_the_settings_name_has_tensors() {
    let base = base("gpt2");
    let Network::Decoder(arch, storage) = &base.description.network else { panic!("a decoder") };
    let modules = target_modules(arch, storage, &base.weights);
    let written = |targets: &[&str], named: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let chosen = select(&modules, &owned(targets)).unwrap();
        let zeros = |rows: usize, columns: usize| Tensor::zeros((rows, columns), DType::F32, &Device::Cpu).unwrap();
        let tensors: Vec<_> = chosen.iter().map(|m| (zeros(2, m.inputs), zeros(m.rows.len(), 2))).collect();
        let with: Vec<_> = chosen.iter().zip(&tensors).map(|(module, (down, up))| (module, down, up)).collect();
        let config = PeftConfig::read(&fs::read(saved("gpt2").join("adapter_config.json")).unwrap()).unwrap();
        let config = PeftConfig { rank: 2, target_modules: owned(named), ..config };
        let copy = tempfile::tempdir().unwrap();
        for (name, content) in save(&config, true, &with).unwrap() {
            fs::write(copy.path().join(name), content).unwrap();
        }
        open(&base, copy.path()).map_err(|error| error.to_string())
    };
    // Attention and MLP have a module of this name each.
    assert!(written(&["c_proj"], &["c_proj"]).is_ok());
    assert!(written(&["h.1.attn.c_attn"], &["h.1.attn.c_attn"]).is_ok());
    let refusal = written(&["attn.c_proj"], &["c_proj"]).unwrap_err();
    assert!(refusal.contains("h.0.mlp.c_proj.lora_A.weight`: missing: `target_modules` names"), "{refusal}");
}

#[test]
fn an_adapter_of_another_base_is_refused() {
    for (golden, other) in [("llama-gqa", "mistral"), ("llama-gqa", "gpt2"), ("gpt2", "gptneox-parallel")] {
        let refusal = open(&base(other), &saved(golden)).unwrap_err();
        assert!(matches!(refusal, ModelError::Tensor { .. }), "{golden} on {other}: {refusal}");
    }
    let refusal = open(&base("mamba"), &saved("gpt2")).unwrap_err().to_string();
    assert!(refusal.contains("models of type `mamba` take no adapters"), "{refusal}");
}

/// The adapter of a golden with its tensors changed in place.
fn with_tensors(golden: &str, change: impl FnOnce(&mut Vec<u8>)) -> TempDir {
    let copy = changed(golden, |_| ());
    let path = copy.path().join("adapter_model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    change(&mut bytes);
    fs::write(&path, bytes).unwrap();
    copy
}

#[test]
fn broken_tensors_are_refused_by_name() {
    let base = base("gpt2");
    let copy = with_tensors("gpt2", |bytes| {
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    let refusal = open(&base, copy.path()).unwrap_err().to_string();
    assert!(refusal.contains("lora_") && refusal.ends_with("is NaN"), "{refusal}");
    let copy = with_tensors("gpt2", |bytes| bytes.truncate(bytes.len() - 8));
    let refusal = open(&base, copy.path()).unwrap_err().to_string();
    assert!(refusal.contains("cut off"), "{refusal}");
    let copy = with_tensors("gpt2", |bytes| {
        let text = String::from_utf8_lossy(&bytes[..600]).into_owned();
        let place = text.find("h.1.attn").unwrap();
        bytes[place + 2] = b'7';
    });
    let refusal = open(&base, copy.path()).unwrap_err().to_string();
    assert!(refusal.contains("h.7.attn") || refusal.contains("missing"), "{refusal}");
    let empty = tempfile::tempdir().unwrap();
    let refusal = open(&base, empty.path()).unwrap_err().to_string();
    assert!(refusal.contains("adapter_config.json") && refusal.contains("found: nothing"), "{refusal}");
}

#[test]
fn targets_are_matched_by_the_end_of_their_names() {
    let base = base("llama-gqa");
    let Network::Decoder(arch, storage) = &base.description.network else { panic!("a decoder") };
    let modules = target_modules(arch, storage, &base.weights);
    let names = |targets: &[&str]| {
        let targets: Vec<String> = targets.iter().map(|target| (*target).to_owned()).collect();
        select(&modules, &targets)
            .map(|chosen| chosen.iter().map(|module| module.name().to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(names(&["layers.1.self_attn.k_proj"]).unwrap(), ["model.layers.1.self_attn.k_proj"]);
    assert_eq!(names(&["gate_proj", "down_proj"]).unwrap().len(), 4);
    let refusal = names(&["q_proj", "proj"]).unwrap_err();
    let has = "q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj";
    assert_eq!(refusal, format!("the model has no module `proj` that can be tuned; it has {has}"));
}
