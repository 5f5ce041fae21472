//! Every number of the goldens of all families, from text to score, against the reference implementations.

use crate::common::goldens::{CAUSAL, STATS, directory, expected, numbers};
use crate::common::{FEW, stats_columns};
use candle_core::{DType, Device};
use kernels::packed::{Isa, Products};
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};
use lm::models::precision;
use lm::tokenizer::{self, Tokenizer, TokenizerError};
use mia::TokenStats;
use mia::methods::{self, MethodRequest, Scope, TextStats, WeightContext};
use serde_json::Value;

/// Scores are means of the above; z scores divide by a sigma near 1.
const SCORES: (f64, f64) = (1e-4, 1e-3);

/// The largest error seen, in units of nothing but itself; panics past the tolerance.
#[derive(Default)]
struct Worst(f64);

impl Worst {
    fn check(&mut self, what: &str, got: f64, want: f64, (absolute, relative): (f64, f64)) {
        let error = (got - want).abs();
        assert!(error <= absolute + relative * want.abs(), "{what}: {got} but the reference has {want}");
        self.0 = self.0.max(error);
    }
}

#[derive(Default)]
struct Report {
    stats: Worst,
    scores: Worst,
    compared: usize,
}

struct Golden {
    name: &'static str,
    model: Box<dyn CausalLm>,
    tokenizer: Tokenizer,
    context: Option<usize>,
    expected: Value,
}

impl Golden {
    fn open(name: &'static str, config: &str) -> Self {
        Self::open_in(None, name, config)
    }

    /// In a given form, or the one that this machine would choose.
    fn open_in(form: Option<Form>, name: &'static str, config: &str) -> Self {
        // The other spelling of the configuration goes into a directory of its own, beside the same weights.
        let directory = directory(name);
        let copy = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, copy.path().join(path.file_name().unwrap())).unwrap();
        }
        std::fs::copy(directory.join(config), copy.path().join("config.json")).unwrap();
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(copy.path().into())).unwrap();
        let tokenizer = Tokenizer::from_json(&std::fs::read(directory.join("tokenizer.json")).unwrap()).unwrap();
        let form = form.unwrap_or(checkpoint.form(DType::F32, &Device::Cpu).unwrap());
        let model = checkpoint.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap();
        Self { name, model, tokenizer, context: checkpoint.context(), expected: expected(name) }
    }

    fn stats(&self, ids: &[u32]) -> Vec<TokenStats> {
        self.model.token_stats(&[ids]).unwrap().remove(0)
    }
}

fn compare_stats(golden: &str, want: &Value, got: &[TokenStats], report: &mut Report) {
    if want["T"] == 0 {
        return assert!(got.is_empty(), "{golden}: nothing to score");
    }
    for (column, got) in stats_columns(got) {
        let want = numbers(&want["tokens"][column]);
        assert_eq!(want.len(), got.len(), "{golden}: scored tokens");
        for (t, (want, got)) in want.iter().zip(got).enumerate() {
            report.stats.check(&format!("{golden} {column}[{}]", t + 1), got, *want, STATS);
            report.compared += 1;
        }
    }
}

/// `(request, value)` for every score of a golden text that these methods give.
fn wanted_scores(scores: &Value) -> Vec<(String, &Value)> {
    let mut wanted = vec![(r#""loss""#.into(), &scores["loss"]), (r#""zlib""#.into(), &scores["zlib"])];
    let selecting = [("mink", "min_k"), ("mink++", "min_k_plus_plus")];
    for (theirs, ours) in selecting {
        for (k, value) in scores[theirs].as_object().into_iter().flatten() {
            wanted.push((format!(r#"{{"name":"{ours}","k":{k}}}"#), value));
        }
    }
    for (decay, alphas) in scores["pdr"].as_object().into_iter().flatten() {
        for (alpha, values) in alphas.as_object().into_iter().flatten() {
            let pdr = format!(r#""pdr":{{"decay":"{decay}","alpha":{alpha}}}"#);
            wanted.push((format!(r#"{{"name":"loss",{pdr}}}"#), &values["loss"]));
            for (theirs, ours) in selecting {
                wanted.push((format!(r#"{{"name":"{ours}","k":0.2,{pdr}}}"#), &values[format!("{theirs}_0.2")]));
            }
        }
    }
    wanted
}

fn compare_scores(golden: &str, want: &Value, text: &str, stats: &[TokenStats], report: &mut Report) {
    if stats.is_empty() {
        return;
    }
    let text = TextStats {
        tokens: stats,
        ids: &[],
        zlib_bytes: &|| methods::zlib_bytes(text),
        passes: &[],
        token_counts: &[],
        context: WeightContext { text, dataset: &[] },
    };
    for (request, want) in wanted_scores(&want["scores"]) {
        // Null where the reference divides 0 by 0; our answers there are settled by unit tests of the methods.
        let Some(want) = want.as_f64() else { continue };
        let method: MethodRequest = serde_json::from_str(&request).unwrap();
        let method = methods::resolve(&[method], &Scope::default()).unwrap().remove(0);
        let got = methods::score(&method.method, &text).unwrap();
        report.scores.check(&format!("{golden} {request}"), got, want, SCORES);
        report.compared += 1;
    }
}

fn check(golden: &Golden) -> Report {
    let name = golden.name;
    let mut report = Report::default();
    for entry in golden.expected["texts"].as_array().unwrap() {
        let text = entry["text"].as_str().unwrap();
        let encoded = golden.tokenizer.encode(text).unwrap();
        assert_eq!(serde_json::json!(*encoded.ids), entry["ids"], "{name}: ids of {text:?}");
        let label = format!("{name} {}", entry["name"]);
        if let Some(context) = golden.context.filter(|&context| encoded.ids.len() > context) {
            let ids = &encoded.ids[..context];
            let (cut, stats) = (&entry["truncated"], golden.stats(ids));
            compare_stats(&label, cut, &stats, &mut report);
            compare_scores(&label, cut, text, &stats, &mut report);
        } else {
            let stats = golden.stats(&encoded.ids);
            compare_stats(&label, entry, &stats, &mut report);
            compare_scores(&label, entry, text, &stats, &mut report);
        }
    }
    report
}

#[test]
fn every_golden_is_reproduced_in_both_spellings_of_its_configuration() {
    for name in CAUSAL {
        for config in ["config.json", "config.alt.json"] {
            let report = check(&Golden::open(name, config));
            println!(
                "{name} ({config}): {} numbers, worst error of a statistic {:.1e}, of a score {:.1e}",
                report.compared, report.stats.0, report.scores.0
            );
            assert!(report.compared > 3000, "{name}: only {} numbers compared", report.compared);
        }
    }
}

/// Also as machines without the kernels for packed weights run them.
#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn every_golden_is_reproduced_by_every_way_to_take_products() {
    reproduce_by_every_product(&CAUSAL);
}

#[test]
fn a_few_goldens_are_reproduced_by_every_way_to_take_products() {
    reproduce_by_every_product(&FEW);
}

fn reproduce_by_every_product(goldens: &[&'static str]) {
    let packed = Isa::available(Products::F32).into_iter().map(|isa| Multiply::Packed(Products::F32, isa));
    for multiply in packed.chain([Multiply::Gemm]) {
        for name in goldens.iter().copied() {
            let report = check(&Golden::open_in(Some(Form::Fused(multiply)), name, "config.json"));
            assert!(report.compared > 3000, "{name} by {multiply:?}: only {} numbers compared", report.compared);
        }
    }
}

/// The order of the steps on a GPU is the same on the CPU, where each of them has a twin in f32.
#[test]
fn the_plain_form_and_the_steps_of_a_gpu_give_the_same_statistics() {
    for name in CAUSAL {
        let golden = Golden::open(name, "config.json");
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
        let ids: Vec<Vec<u32>> = golden.expected["texts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| golden.tokenizer.encode(t["text"].as_str().unwrap()).unwrap().ids)
            .map(|ids| ids.iter().copied().take(golden.context.unwrap_or(usize::MAX)).collect())
            .collect();
        // All in one batch, of very different lengths: the plain form pads around attention.
        let batch: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
        // Scans alone have no twin.
        let is_decoder = checkpoint.has_half_precision();
        for form in [Form::Plain].into_iter().chain(is_decoder.then_some(Form::Gpu(DType::F32))) {
            let model = checkpoint.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap();
            let mut worst = Worst::default();
            for (ids, stats) in ids.iter().zip(model.token_stats(&batch).unwrap()) {
                let fused = golden.stats(ids);
                assert_eq!(fused.len(), stats.len(), "{name}: scored tokens");
                for (a, b) in fused.iter().zip(&stats) {
                    worst.check(&format!("{name} in {form:?}, lp"), a.lp, b.lp, STATS);
                    worst.check(&format!("{name} in {form:?}, max"), a.max_lp, b.max_lp, STATS);
                    worst.check(&format!("{name} in {form:?}, mu"), a.mu, b.mu, STATS);
                    worst.check(&format!("{name} in {form:?}, sigma"), a.sigma(), b.sigma(), STATS);
                }
            }
        }
    }
}

/// As OPT's own repositories are: weights that torch saved, and no `tokenizer.json`.
#[test]
fn opt_is_reproduced_from_vocab_json_and_merges_txt_alone() {
    for name in ["opt-pre", "opt-post-proj"] {
        let mut golden = Golden::open(name, "config.json");
        let find = |file: &'static str| -> Result<_, TokenizerError> {
            Ok(std::fs::read(directory(name).join(file)).ok().filter(|_| file != "tokenizer.json"))
        };
        golden.tokenizer = tokenizer::from_files(find).unwrap().0;
        let report = check(&golden);
        println!("{name}: {} numbers, worst error of a score {:.1e}", report.compared, report.scores.0);
        assert!(report.compared > 3000);
    }
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn rounded_numbers_of_all_goldens_stay_as_near_the_reference_as_answers_say() {
    stay_within_the_stated_rounding(&CAUSAL);
}

#[test]
fn rounded_numbers_stay_as_near_the_reference_as_answers_say() {
    stay_within_the_stated_rounding(&FEW);
}

/// In the half types weights, activations and logits are rounded; answers say how far that may take them.
fn stay_within_the_stated_rounding(goldens: &[&'static str]) {
    let packed = |products, dtype| {
        let isas = Isa::available(products).into_iter();
        isas.map(move |isa| (Form::Fused(Multiply::Packed(products, isa)), dtype))
    };
    let plain = [(Form::Plain, DType::BF16), (Form::Plain, DType::F16)];
    for (form, dtype) in packed(Products::Bf16, DType::BF16).chain(plain) {
        let rounding = precision::rounding(form, dtype).unwrap();
        for name in goldens.iter().copied() {
            let golden = Golden::open(name, "config.json");
            let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
            if dtype != DType::F32 && !checkpoint.has_half_precision() {
                continue;
            }
            let model = checkpoint.load_in(form, dtype, &Device::Cpu).unwrap().causal().unwrap();
            let (mut worst, mut sum, mut count) = (0f64, 0.0, 0);
            for text in golden.expected["texts"].as_array().unwrap().iter().filter(|text| text["T"] != 0) {
                let ids: Vec<u32> = serde_json::from_value(text["ids"].clone()).unwrap();
                if ids.len() > golden.context.unwrap_or(usize::MAX) {
                    continue;
                }
                let want = numbers(&text["tokens"]["logp"]);
                let stats = model.token_stats(&[&ids[..]]).unwrap().remove(0);
                assert_eq!(stats.len(), want.len());
                for (got, want) in stats.iter().zip(want) {
                    // Of the same logits, so that no rounding puts a token above the first choice.
                    assert!(
                        got.lp <= got.max_lp && got.max_lp <= 0.0 && got.var >= 0.0,
                        "{name} in {dtype:?}: {got:?}"
                    );
                    worst = worst.max((got.lp - want).abs());
                    sum += got.lp - want;
                    count += 1;
                }
            }
            let mean = sum / f64::from(count);
            println!("{name} in {dtype:?}, {form:?}: worst error of log p {worst:.1e}, mean {mean:.1e}");
            assert!(
                worst < rounding.log_probability && count > 300,
                "{name} in {dtype:?}: {worst} over {count} tokens"
            );
            assert!(mean.abs() < rounding.mean_log_probability, "{name} in {dtype:?}: mean error {mean}");
        }
    }
}
