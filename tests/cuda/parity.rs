//! Every golden on a GPU: in its own form and in candle's operations, in every type, alone and in one batch.
//!
//! `PDR_AUDIT_TEST_GOLDENS` names the directory of the goldens where it is not that of the sources.

use crate::gpu;
use candle_core::DType;
use pdr_audit::models::CausalLm;
use pdr_audit::models::checkpoint::Checkpoint;
use pdr_audit::models::files::ModelFiles;
use pdr_audit::models::ops::Form;
use pdr_audit::models::precision;
use pdr_audit::token_stats::TokenStats;
use serde_json::Value;
use std::path::PathBuf;

const CAUSAL: [&str; 20] = [
    "gptneox-parallel",
    "gptneox-sequential",
    "gptneox-sharded",
    "gptneox-bf16",
    "gptneox-f16",
    "llama-gqa",
    "llama-linear-rope",
    "llama-tied",
    "mistral",
    "qwen2",
    "qwen3",
    "phi3",
    "gemma2",
    "opt-pre",
    "opt-post-proj",
    "gptj",
    "gpt_neo",
    "gpt2",
    "mamba",
    "mamba2",
];

/// That of the CPU in f32: sums have another order there as well.
const F32: f64 = 2e-4;

struct Golden {
    name: &'static str,
    checkpoint: Checkpoint,
    /// Ids with the reference's log-probabilities.
    texts: Vec<(Vec<u32>, Vec<f64>)>,
}

impl Golden {
    fn open(name: &'static str) -> Self {
        let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens");
        let directory = std::env::var_os("PDR_AUDIT_TEST_GOLDENS").map_or(beside, PathBuf::from).join(name);
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory.clone())).unwrap();
        let expected: Value = serde_json::from_slice(&std::fs::read(directory.join("expected.json")).unwrap()).unwrap();
        let longest = checkpoint.context().unwrap_or(usize::MAX);
        let texts = expected["texts"].as_array().unwrap().iter().filter(|text| text["T"] != 0);
        let texts = texts.map(|text| {
            let ids: Vec<u32> = serde_json::from_value(text["ids"].clone()).unwrap();
            (ids, serde_json::from_value(text["tokens"]["logp"].clone()).unwrap())
        });
        Self { name, checkpoint, texts: texts.filter(|(ids, _): &(Vec<u32>, _)| ids.len() <= longest).collect() }
    }

    /// The worst error of a log-probability, and the mean one.
    fn compare(&self, what: &str, stats: &[Vec<TokenStats>]) -> (f64, f64) {
        let (mut worst, mut sum, mut count) = (0f64, 0.0, 0);
        for ((_, want), got) in self.texts.iter().zip(stats) {
            assert_eq!(got.len(), want.len(), "{} {what}", self.name);
            for (got, want) in got.iter().zip(want) {
                assert!(got.lp <= got.max_lp && got.max_lp <= 0.0 && got.var >= 0.0, "{} {what}: {got:?}", self.name);
                worst = worst.max((got.lp - want).abs());
                sum += got.lp - want;
                count += 1;
            }
        }
        assert!(count > 300, "{}: only {count} tokens", self.name);
        (worst, sum / f64::from(count))
    }

    /// Alone and in one batch of very different lengths.
    fn check(&self, model: &dyn CausalLm, form: Form, dtype: DType) {
        let batch: Vec<&[u32]> = self.texts.iter().map(|(ids, _)| ids.as_slice()).collect();
        let together = model.token_stats(&batch).unwrap();
        let alone: Vec<_> = batch.iter().map(|ids| model.token_stats(&[ids]).unwrap().remove(0)).collect();
        let (most, most_mean) = match precision::rounding(form, dtype) {
            None => (F32, F32),
            Some(rounding) => (rounding.log_probability, rounding.mean_log_probability),
        };
        for (what, stats) in [("together", &together), ("alone", &alone)] {
            let what = format!("in {form:?}, {dtype:?}, {what}");
            let (worst, mean) = self.compare(&what, stats);
            println!("{} {what}: worst error of a log-probability {worst:.1e}, mean {mean:.1e}", self.name);
            assert!(worst <= most && mean.abs() <= most_mean, "{} {what}: {worst}, mean {mean}", self.name);
        }
    }
}

#[test]
fn every_golden_is_reproduced_in_every_type() {
    let Some(gpu) = gpu() else { return };
    for name in CAUSAL {
        let golden = Golden::open(name);
        let halves = if golden.checkpoint.has_half_precision() { &[DType::F16, DType::BF16][..] } else { &[] };
        for &dtype in [DType::F32].iter().chain(halves) {
            let form = golden.checkpoint.form(dtype, &gpu).unwrap();
            assert_eq!(form, Form::Gpu(dtype), "{name}: kernels are missing");
            for form in [form, Form::Plain] {
                let model = golden.checkpoint.load_in(form, dtype, &gpu).unwrap().causal().unwrap();
                golden.check(model.as_ref(), form, dtype);
            }
        }
    }
}
