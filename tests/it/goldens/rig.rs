//! A service over goldens, and the same goldens without a service.

use crate::common::app::{App, golden};
use crate::common::goldens::{directory, expected};
use candle_core::{DType, Device as CandleDevice};
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::tokenizer::Tokenizer;
use mia::TokenStats;
use pdr_audit::config::{DeviceChoice, LoadPolicy, ModelSettings, Settings};
use serde_json::Value;

/// Two ways to add up the same terms in f64: they differ by rounding alone, far below this for a few hundred terms of
/// some tens.
pub const ROUNDING: f64 = 1e-11;

/// Settings with these goldens, each under its own name, the first the default one, and with the reference that its
/// numbers were made with, where that is among them too.
pub fn settings(names: &[&str]) -> Settings {
    let mut settings = Settings::default();
    settings.engine.device = DeviceChoice::Cpu;
    settings.engine.threads = 1;
    settings.engine.max_batch_tokens = Some(2048);
    settings.engine.default_model = names.first().map(|&name| name.to_owned());
    settings.models = names.iter().map(|&name| model(name, names)).collect();
    settings
}

fn model(name: &str, names: &[&str]) -> ModelSettings {
    let reference = reference(name).filter(|reference| names.contains(&reference.as_str()));
    ModelSettings { reference, load: LoadPolicy::Lazy, ..golden(name, name) }
}

/// The golden that the reference scores of another were made with.
pub fn reference(name: &str) -> Option<String> {
    let reference = expected(name)["reference"].as_str()?.strip_prefix("../")?.to_owned();
    Some(reference)
}

/// A service over these goldens, each loaded by its first request.
pub async fn serve(names: &[&str]) -> App {
    App::start_as_it_is(&settings(names)).await
}

/// The texts of a golden.
pub fn texts(name: &str) -> Vec<Value> {
    expected(name)["texts"].as_array().unwrap().clone()
}

/// The text of that name.
pub fn text(golden: &str, name: &str) -> String {
    let entry = texts(golden).into_iter().find(|text| text["name"] == name).unwrap();
    entry["text"].as_str().unwrap().to_owned()
}

/// The results of an answer.
pub fn results(answer: &Value) -> &[Value] {
    answer["results"].as_array().unwrap()
}

/// The score under a label.
pub fn score(result: &Value, label: &str) -> f64 {
    result["scores"][label].as_f64().unwrap_or_else(|| panic!("no score `{label}` in {result}"))
}

/// The code of the error under a label; empty where there is none.
pub fn code<'a>(result: &'a Value, label: &str) -> &'a str {
    let errors = result["errors"].as_array().unwrap();
    errors.iter().find(|error| error["label"] == label).map_or("", |error| error["code"].as_str().unwrap())
}

/// One number of each scored token, from an answer with details.
pub fn column(result: &Value, field: &str) -> Vec<f64> {
    result["tokens"].as_array().unwrap().iter().filter_map(|token| token[field].as_f64()).collect()
}

pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The mean after linear decay with an alpha of 1.
pub fn linear_mean(values: &[f64]) -> f64 {
    let n = values.len();
    let weight = |at: usize| if n == 1 { 1.0 } else { 1.0 - at as f64 / (n - 1) as f64 };
    values.iter().enumerate().map(|(at, value)| weight(at) * value).sum::<f64>() / n as f64
}

#[track_caller]
pub fn assert_same(what: &str, got: f64, want: f64) {
    let error = (got - want).abs();
    assert!(error <= ROUNDING * want.abs().max(1.0), "{what}: {got} instead of {want}, off by {error:e}");
}

/// A golden without a service around it.
pub struct Local {
    model: Box<dyn CausalLm>,
    pub tokenizer: Tokenizer,
    pub context: Option<usize>,
}

impl Local {
    pub fn open(name: &str) -> Self {
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
        let model = checkpoint.load(DType::F32, &CandleDevice::Cpu).unwrap().causal().unwrap();
        Self { model, tokenizer: tokenizer(name), context: checkpoint.context() }
    }

    pub fn ids(&self, text: &str) -> Vec<u32> {
        self.tokenizer.encode(text).unwrap().ids.to_vec()
    }

    /// One forward pass.
    pub fn stats(&self, ids: &[u32]) -> Vec<TokenStats> {
        self.model.token_stats(&[ids]).unwrap().remove(0)
    }

    /// The log-probabilities of one forward pass.
    pub fn lps(&self, ids: &[u32]) -> Vec<f64> {
        self.stats(ids).iter().map(|stats| stats.lp).collect()
    }
}

/// The tokenizer of a golden.
pub fn tokenizer(name: &str) -> Tokenizer {
    Tokenizer::from_json(&std::fs::read(directory(name).join("tokenizer.json")).unwrap()).unwrap()
}
