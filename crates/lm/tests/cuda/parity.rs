//! Every golden on a GPU: in its own form and in candle's operations, in every type, alone and in one batch.

use crate::columns::stats_columns;
use crate::goldens::{CAUSAL, STATS, directory, expected, numbers};
use crate::gpu;
use candle_core::DType;
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::ops::Form;
use lm::models::precision;
use mia::TokenStats;
use serde_json::Value;

struct Golden {
    name: &'static str,
    checkpoint: Checkpoint,
    /// Ids with what the reference has for them, by column.
    texts: Vec<(Vec<u32>, Value)>,
}

impl Golden {
    fn open(name: &'static str) -> Self {
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
        let longest = checkpoint.context().unwrap_or(usize::MAX);
        let expected = expected(name);
        let texts = expected["texts"].as_array().unwrap().iter().filter(|text| text["T"] != 0);
        let texts = texts.map(|text| {
            let ids: Vec<u32> = serde_json::from_value(text["ids"].clone()).unwrap();
            (ids, text["tokens"].clone())
        });
        Self { name, checkpoint, texts: texts.filter(|(ids, _)| ids.len() <= longest).collect() }
    }

    /// The worst error of a log-probability, and the mean one. In f32 every statistic is held to the tolerance of the CPU.
    fn compare(&self, what: &str, stats: &[Vec<TokenStats>], is_f32: bool) -> (f64, f64) {
        let (mut worst, mut sum, mut count) = (0f64, 0.0, 0);
        for ((_, want), got) in self.texts.iter().zip(stats) {
            for (column, got) in stats_columns(got) {
                let want = numbers(&want[column]);
                assert_eq!(got.len(), want.len(), "{} {what}", self.name);
                for (got, want) in got.iter().zip(&want) {
                    let error = got - want;
                    let (absolute, relative) = STATS;
                    let is_close = !is_f32 || error.abs() <= absolute + relative * want.abs();
                    assert!(got.is_finite() && is_close, "{} {what}, {column}: {got}, not {want}", self.name);
                    if column == "logp" {
                        (worst, sum, count) = (worst.max(error.abs()), sum + error, count + 1);
                    }
                }
            }
            let is_ordered = |got: &TokenStats| got.lp <= got.max_lp && got.max_lp <= 0.0 && got.var >= 0.0;
            assert!(got.iter().all(is_ordered), "{} {what}: {got:?}", self.name);
        }
        assert!(count > 300, "{}: only {count} tokens", self.name);
        (worst, sum / f64::from(count))
    }

    /// Alone and in one batch of very different lengths.
    fn check(&self, model: &dyn CausalLm, form: Form, dtype: DType) {
        let batch: Vec<&[u32]> = self.texts.iter().map(|(ids, _)| ids.as_slice()).collect();
        let together = model.token_stats(&batch).unwrap();
        let alone: Vec<_> = batch.iter().map(|ids| model.token_stats(&[ids]).unwrap().remove(0)).collect();
        let rounding = precision::rounding(form, dtype);
        for (what, stats) in [("together", &together), ("alone", &alone)] {
            let what = format!("in {form:?}, {dtype:?}, {what}");
            let (worst, mean) = self.compare(&what, stats, rounding.is_none());
            println!("{} {what}: worst error of a log-probability {worst:.1e}, mean {mean:.1e}", self.name);
            if let Some(rounding) = &rounding {
                let is_close = worst <= rounding.log_probability && mean.abs() <= rounding.mean_log_probability;
                assert!(is_close, "{} {what}: {worst}, mean {mean}", self.name);
            }
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
