//! Losses and gradients against PyTorch, and what must hold of every tuning.

use super::*;
use crate::models::checkpoint::Checkpoint;
use crate::models::files::ModelFiles;
use candle_core::{Device, Tensor, safetensors};
use serde_json::Value;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

const ADAPTED: [&str; 6] = ["gptneox-parallel", "llama-gqa", "opt-pre", "gptj", "gpt_neo", "gpt2"];

fn directory(golden: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/goldens").join(golden)
}

fn base(golden: &str) -> Checkpoint {
    Checkpoint::open(&ModelFiles::Directory(directory(golden))).unwrap()
}

fn tuner(golden: &str, lora: &LoraSettings, optimizer: &OptimizerSettings, seed: u64) -> Result<Tuner, TuningError> {
    let texts = (0..20).map(|text| (0..30).map(|i| (text * 7 + i * i) % 90 + 3).collect()).collect();
    let (lora, optimizer) = (lora.clone(), optimizer.clone());
    let settings = TuningSettings { lora, optimizer, seed, base: "base".into(), revision: None };
    Tuner::new(&base(golden), &Device::Cpu, &settings, texts)
}

fn small() -> LoraSettings {
    LoraSettings { rank: 4, alpha: 8.0, ..LoraSettings::default() }
}

fn norm(tensor: &Tensor) -> f64 {
    f64::from(tensor.sqr().unwrap().sum_all().unwrap().to_scalar::<f32>().unwrap()).sqrt()
}

#[test]
fn loss_and_gradients_are_those_of_pytorch() {
    for golden in ADAPTED {
        let lora = LoraSettings { dropout: 0.0, ..small() };
        let tuner = tuner(golden, &lora, &OptimizerSettings::default(), 1).unwrap();
        let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/lora").join(golden);
        let tensors = safetensors::load(saved.join("adapter_model.safetensors"), &Device::Cpu).unwrap();
        let variables = tuner.variables();
        assert_eq!(variables.len(), tensors.len(), "{golden}");
        for (name, variable) in &variables {
            variable.set(&tensors[name]).unwrap();
        }
        let expected: Value = serde_json::from_slice(&fs::read(saved.join("expected.json")).unwrap()).unwrap();
        let ids = |text: &Value| -> Vec<u32> {
            text["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32).collect()
        };
        let texts: Vec<Vec<u32>> = expected["texts"].as_array().unwrap().iter().map(ids).collect();
        let texts: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let (loss, gradients) = tuner.named_gradients(&texts);
        let reference = expected["loss"].as_f64().unwrap();
        // The reference sums in f32.
        assert!((loss - reference).abs() < 1e-5, "{golden}: {loss} {reference}");
        let references = safetensors::load(saved.join("gradients.safetensors"), &Device::Cpu).unwrap();
        for (name, gradient) in gradients {
            let error = norm(&(&gradient - &references[&name]).unwrap()) / norm(&references[&name]);
            assert!(error < 1e-3, "{golden} {name}: {error}");
        }
    }
}

fn run(golden: &str, lora: &LoraSettings, optimizer: &OptimizerSettings, seed: u64) -> (Vec<StepReport>, Tuner) {
    let mut tuner = tuner(golden, lora, optimizer, seed).unwrap();
    let mut reports = Vec::new();
    while let Some(report) = tuner.step(&mut || ControlFlow::Continue(())).unwrap() {
        reports.push(report);
    }
    assert_eq!(reports.len(), tuner.steps());
    (reports, tuner)
}

#[test]
fn the_loss_falls_and_the_adapter_fits_its_base() {
    let optimizer =
        OptimizerSettings { epochs: 8, learning_rate: 1e-2, warmup_steps: 2, ..OptimizerSettings::default() };
    for golden in ["gpt2", "gptj", "gptneox-parallel"] {
        let (reports, tuner) = run(golden, &small(), &optimizer, 5);
        assert_eq!(reports.len(), 16, "two batches of eight texts an epoch");
        assert_eq!(reports[0].learning_rate, 0.0);
        assert!(reports[15].loss < reports[0].loss - 0.2, "{golden}: {reports:?}");
        let saved = tempfile::tempdir().unwrap();
        for (name, content) in tuner.files().unwrap() {
            fs::write(saved.path().join(name), content).unwrap();
        }
        let adapter = base(golden).adapter(&ModelFiles::Directory(saved.path().into())).unwrap();
        assert_eq!((adapter.config.rank, adapter.config.base.as_deref()), (4, Some("base")));
    }
}

#[test]
fn the_same_seed_gives_the_same_bits_on_any_number_of_threads() {
    let optimizer = OptimizerSettings { epochs: 2, warmup_steps: 1, ..OptimizerSettings::default() };
    let files = |threads: usize, seed: u64| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| run("llama-gqa", &small(), &optimizer, seed).1.files().unwrap())
    };
    let first = files(1, 42);
    assert!(first == files(3, 42), "the number of threads changes the adapter");
    assert!(first[1].1 != files(1, 43)[1].1, "another seed gives the same adapter");
}

#[test]
fn what_cannot_be_tuned_is_refused_by_name() {
    let message = |golden: &str, lora: LoraSettings, optimizer: OptimizerSettings| {
        tuner(golden, &lora, &optimizer, 1).err().expect("a refusal").to_string()
    };
    let usual = OptimizerSettings::default;
    let refusal = message("mamba", small(), usual());
    assert_eq!(refusal, "models of type `mamba` have no default LoRA targets");
    let refusal = message("gpt2", LoraSettings { rank: 65, ..small() }, usual());
    assert_eq!(refusal, "rank 65 is above the dimension 64 of `c_attn`");
    let refusal = message("gpt2", small(), OptimizerSettings { batch_size: 21, ..usual() });
    assert_eq!(refusal, "20 texts do not fill one batch of 21");
    let target_modules = Some(vec!["wte".to_owned()]);
    let refusal = message("gpt2", LoraSettings { target_modules, ..small() }, usual());
    assert!(refusal.contains("no module `wte` that can be tuned"), "{refusal}");
}

#[test]
fn a_loss_that_is_no_number_ends_the_tuning() {
    let optimizer =
        OptimizerSettings { learning_rate: 1e30, warmup_steps: 0, epochs: 5, ..OptimizerSettings::default() };
    let mut tuner = tuner("gpt2", &small(), &optimizer, 1).unwrap();
    let error = loop {
        match tuner.step(&mut || ControlFlow::Continue(())) {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended well"),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains(" of 10 is not finite"), "{error}");
}
