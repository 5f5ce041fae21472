//! Models whose layers are read in every forward pass: the same numbers as with all layers in memory, in less memory, and errors
//! instead of numbers where the files cannot be read.

use crate::common::bits;
use crate::common::goldens::{CAUSAL, directory, expected};
use candle_core::{DType, Device};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::layers::TOKENS_AT_ONCE;
use lm::models::ops::{Form, Multiply};
use lm::models::{CausalLm, GreedyPrompt, LoadedModel, ModelError};
use std::path::Path;

const ADAPTED: [&str; 3] = ["gptneox-parallel", "llama-gqa", "opt-pre"];

fn open(directory: &Path) -> (Checkpoint, ModelFiles) {
    let files = ModelFiles::Directory(directory.to_owned());
    (Checkpoint::open(&files).unwrap(), files)
}

fn try_stream(directory: &Path, form: Form) -> Result<LoadedModel, ModelError> {
    let (checkpoint, files) = open(directory);
    let stamp = files.stamp().unwrap();
    checkpoint.stream(form, DType::F32, &Device::Cpu, files, stamp)
}

fn streamed(directory: &Path, form: Form) -> Box<dyn CausalLm> {
    try_stream(directory, form).unwrap().causal().unwrap()
}

fn resident(directory: &Path, form: Form) -> Box<dyn CausalLm> {
    open(directory).0.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap()
}

/// The ids of a golden's texts within the context, repeated until several parts of a batch are full.
fn sequences(golden: &str, context: usize) -> Vec<Vec<u32>> {
    let ids = |text: &serde_json::Value| {
        let ids = text["ids"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap() as u32);
        ids.take(context).collect::<Vec<_>>()
    };
    let texts: Vec<Vec<u32>> = expected(golden)["texts"].as_array().unwrap().iter().map(ids).collect();
    let tokens: usize = texts.iter().map(Vec::len).sum();
    let copies = (2 * TOKENS_AT_ONCE).div_ceil(tokens);
    texts.iter().cycle().take(texts.len() * copies).cloned().collect()
}

fn best_form() -> Form {
    Form::inference(&Device::Cpu, DType::F32)
}

/// A copy of a golden, which may be changed.
fn copied(golden: &str) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(directory(golden)).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
    }
    copy
}

#[test]
fn statistics_have_the_same_bits_as_with_all_layers_in_memory() {
    let mut forms = vec![best_form(), Form::Fused(Multiply::Gemm), Form::Plain];
    forms.dedup();
    for golden in CAUSAL.into_iter().filter(|golden| !golden.starts_with("mamba")) {
        let directory = directory(golden);
        let (checkpoint, _) = open(&directory);
        let texts = sequences(golden, checkpoint.context().unwrap());
        let ids: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        for &form in &forms {
            let want = resident(&directory, form).token_stats(&ids).unwrap();
            let streamed = streamed(&directory, form);
            for round in 0..2 {
                let got = streamed.token_stats(&ids).unwrap();
                let same = got.iter().zip(&want).all(|(got, want)| bits(got) == bits(want));
                assert!(same && got.len() == want.len(), "{golden}, {form:?}, pass {round}");
            }
        }
    }
}

#[test]
fn adapters_and_continuations_are_those_of_the_resident_model() {
    for golden in ADAPTED {
        let directory = directory(golden);
        let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/lora").join(golden);
        let adapter = open(&directory).0.adapter(&ModelFiles::Directory(saved)).unwrap();
        let texts = sequences(golden, open(&directory).0.context().unwrap());
        let ids: Vec<&[u32]> = texts.iter().map(Vec::as_slice).collect();
        let prompt = GreedyPrompt { ids: texts[0][..4].into(), draft: [1, 2].into(), most: 3, ends: [].into() };
        let results = [resident(&directory, best_form()), streamed(&directory, best_form())].map(|model| {
            let adapter = model.load_adapter(&adapter).unwrap();
            let stats = model.adapted_stats(&ids, &adapter).unwrap();
            let continued = model.begin_continuation(&[&prompt], Some(&adapter)).unwrap().wait().unwrap();
            (stats.iter().map(|stats| bits(stats)).collect::<Vec<_>>(), continued)
        });
        assert_eq!(results[0], results[1], "{golden}");
    }
}

#[test]
fn models_without_layers_to_stream_are_refused_by_name() {
    for (golden, model_type) in [("mamba", "mamba"), ("bert-mlm", "bert")] {
        let Err(refusal) = try_stream(&directory(golden), best_form()) else { panic!("{golden} is streamed") };
        let said = format!("forward pass: the layers of models of type `{model_type}` are not streamed");
        assert_eq!(refusal.to_string(), said);
    }
}

#[test]
fn a_tensor_that_a_later_layer_lacks_is_named_when_the_model_is_loaded() {
    let copy = copied("gptneox-parallel");
    let path = copy.path().join("config.json");
    let config = std::fs::read_to_string(&path).unwrap();
    let mut config: serde_json::Value = serde_json::from_str(&config).unwrap();
    let layers = config["num_hidden_layers"].as_u64().unwrap();
    for (changed, named) in [(layers + 1, format!("layers.{layers}.")), (layers - 1, format!("layers.{}.", layers - 1))]
    {
        config["num_hidden_layers"] = changed.into();
        std::fs::write(&path, config.to_string()).unwrap();
        let Err(refusal) = try_stream(copy.path(), best_form()) else { panic!("{changed} layers are streamed") };
        assert!(refusal.to_string().contains(&named), "{refusal}");
    }
}

#[test]
fn files_that_change_end_in_an_error_that_names_them() {
    let copy = copied("gptneox-parallel");
    let model = streamed(copy.path(), best_form());
    let ids: &[u32] = &[1, 2, 3, 4];
    let before = model.token_stats(&[ids]).unwrap();
    assert_eq!(model.token_stats(&[ids]).unwrap(), before);
    let path = copy.path().join("model.safetensors");
    let whole = std::fs::read(&path).unwrap();
    let changes: [&dyn Fn(); 3] = [
        // In place: a truncated map would end the process.
        &|| std::fs::File::options().write(true).open(&path).unwrap().set_len(whole.len() as u64 / 2).unwrap(),
        &|| std::fs::write(&path, &whole).unwrap(),
        &|| std::fs::remove_file(&path).unwrap(),
    ];
    for change in changes {
        change();
        let error = model.token_stats(&[ids]).unwrap_err();
        assert!(matches!(error, ModelError::File { .. }), "{error:?}");
        assert!(error.to_string().contains("model.safetensors: it has changed since"), "{error}");
    }
}

/// In a process of its own, since it measures the size of the process.
#[cfg(target_os = "linux")]
#[test]
fn no_more_than_two_layers_are_in_memory() {
    use crate::common::alone::alone;
    use crate::common::gpt2::Gpt2;
    use crate::common::resident::{now, status};
    use lm::models::device::ComputeDevice;
    use lm::models::footprint::Workload;
    use lm::models::layers::LayerPlacement::{Resident, Streamed};
    alone(|| {
        let directory = tempfile::tempdir().unwrap();
        Gpt2 { vocab: 256, hidden: 512, layers: 48, heads: 8, positions: 64 }.write(directory.path());
        let (form, texts) = (best_form(), [[7_u32; 64], [9; 64]]);
        let checkpoint = open(directory.path()).0;
        let bytes = |layers| checkpoint.weight_bytes(form, DType::F32, layers);
        let activation =
            checkpoint.activation_bytes(form, DType::F32, Streamed, Workload::Batch, rayon::current_num_threads());
        ComputeDevice::cpu().trim();
        let before = now();
        std::fs::write("/proc/self/clear_refs", "5").unwrap();
        let model = streamed(directory.path(), form);
        for _ in 0..3 {
            model.token_stats(&texts.each_ref().map(|ids| ids.as_slice())).unwrap();
        }
        let peak = status("VmHWM:").saturating_sub(before);
        let promised = bytes(Streamed) + activation(128);
        println!("{peak} bytes of {promised} promised; {} with all layers in memory", bytes(Resident));
        assert!(peak < promised, "{peak} bytes, but {promised} were promised");
        assert!(promised < bytes(Resident));
    });
}
