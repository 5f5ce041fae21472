//! Every path that instructions can take, forced: the goldens are reproduced on each, and no batch, number of threads or
//! level of vector instructions changes a bit. What the `gemm` crate chooses cannot be forced in a process; `.ci/run` runs
//! these tests under emulated processors that leave it fewer choices. Tests that force a level run in a process of their own,
//! since the level is that of the whole process.

use crate::common::alone::alone;
use crate::common::goldens::{CAUSAL, STATS, directory, expected, numbers};
use crate::common::{FEW, bits, stats_columns};
use candle_core::{DType, Device};
use kernels::packed::{Isa, Products};
use kernels::simd::Level;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};
use lm::models::precision::{self, Rounding};
use mia::TokenStats;
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Calls `check` at each level of this machine. The level is that of the process, so one test has it at a time.
fn at_each_level(mut check: impl FnMut(Level)) {
    static TURN: Mutex<()> = Mutex::new(());
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    for level in Level::available() {
        level.force().unwrap();
        check(level);
    }
}

/// Every form of a golden at a level, those that must have the same bits side by side. Packed products by their slow
/// definitions, which serve no one, are taken once: that of vectors for a few goldens, since `parity.rs` has it for all; and
/// that of tiles for all where vectors make it fast enough, for it is all that most machines have.
fn forms(name: &str, checkpoint: &Checkpoint, level: Level) -> Vec<(Vec<Form>, DType)> {
    let scalar = level == Level::Scalar && FEW.contains(&name);
    let packed = |products, dtype| {
        let runs = move |isa: &Isa| match isa {
            Isa::Scalar => scalar,
            Isa::AmxEmulated => scalar || level == Level::Avx512,
            Isa::Avx2 | Isa::Avx512 | Isa::Amx => true,
        };
        Isa::groups(products).into_iter().map(move |isas| {
            let forms = isas.into_iter().filter(runs).map(|isa| Form::Fused(Multiply::Packed(products, isa)));
            (forms.collect(), dtype)
        })
    };
    let bf16 = checkpoint.has_half_precision().then(|| packed(Products::Bf16, DType::BF16));
    let unpacked = [Form::Fused(Multiply::Gemm), Form::Plain].map(|form| (vec![form], DType::F32));
    let f32 = packed(Products::F32, DType::F32);
    unpacked.into_iter().chain(f32).chain(bf16.into_iter().flatten()).collect()
}

/// The statistics of each text of a batch.
type Batch = Vec<Vec<TokenStats>>;

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// A golden text that the reference scored whole.
struct Text {
    ids: Vec<u32>,
    tokens: Value,
}

fn texts(name: &str, context: Option<usize>) -> Vec<Text> {
    let expected = expected(name);
    let texts = expected["texts"].as_array().unwrap().iter().filter(|text| text["T"] != 0);
    let text = |text: &Value| Text {
        ids: serde_json::from_value(text["ids"].clone()).unwrap(),
        tokens: text["tokens"].clone(),
    };
    texts.map(text).filter(|text| text.ids.len() <= context.unwrap_or(usize::MAX)).collect()
}

/// Checks the statistics against the reference: all of them in f32, log p alone where a half type rounds.
fn assert_near_reference(what: &str, rounding: Option<Rounding>, text: &Text, stats: &[TokenStats]) {
    for (column, got) in stats_columns(stats) {
        let want = numbers(&text.tokens[column]);
        assert_eq!(got.len(), want.len(), "{what}: scored tokens");
        for (got, want) in got.iter().zip(want) {
            let of_f32 = STATS.0 + STATS.1 * want.abs();
            let tolerance = match (rounding, column) {
                (None, _) => of_f32,
                (Some(rounding), "logp") => rounding.log_probability,
                _ => f64::INFINITY,
            };
            assert!((got - want).abs() <= tolerance, "{what}: {column} is {got}, but the reference has {want}");
        }
    }
}

/// Computes the statistics of each batch with the given threads.
fn run(checkpoint: &Checkpoint, form: Form, dtype: DType, threads: &ThreadPool, batches: &[&[&[u32]]]) -> Vec<Batch> {
    threads.install(|| {
        let model = checkpoint.load_in(form, dtype, &Device::Cpu).unwrap().causal().unwrap();
        batches.iter().map(|batch| model.token_stats(batch).unwrap()).collect()
    })
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn every_form_at_every_level_reproduces_all_goldens_in_every_batch() {
    alone(|| reproduce_at_every_level(&CAUSAL));
}

#[test]
fn every_form_at_every_level_reproduces_a_decoder_and_a_state_space_model() {
    alone(|| reproduce_at_every_level(&["mistral", "mamba2"]));
}

fn reproduce_at_every_level(goldens: &[&str]) {
    let (one, three) = (pool(1), pool(3));
    for name in goldens.iter().copied() {
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
        let texts = texts(name, checkpoint.context());
        assert!(texts.len() > 3, "{name}");
        let batch: Vec<&[u32]> = texts.iter().map(|text| text.ids.as_slice()).collect();
        // Every fourth text, since the slowest path takes minutes for all.
        let alone: Vec<usize> = (0..batch.len()).step_by(4).collect();
        let batches: Vec<&[&[u32]]> = alone.iter().map(|&at| &batch[at..=at]).collect();
        let mut first: HashMap<_, _> = HashMap::new();
        at_each_level(|level| {
            for (at, (forms, dtype)) in forms(name, &checkpoint, level).into_iter().enumerate() {
                for form in forms {
                    let what = format!("{name}, {form:?} in {dtype:?} at {level:?}");
                    let together = run(&checkpoint, form, dtype, &three, &[&batch]).remove(0);
                    for (text, stats) in texts.iter().zip(&together) {
                        assert_near_reference(&what, precision::rounding(form, dtype), text, stats);
                    }
                    let together: Vec<_> = together.iter().map(|stats| bits(stats)).collect();
                    // The plain form pads, and promises no bits.
                    if form.is_fused() {
                        for (&at, stats) in alone.iter().zip(run(&checkpoint, form, dtype, &one, &batches)) {
                            assert!(bits(&stats[0]) == together[at], "{what}: text {at} has other bits alone");
                        }
                    }
                    assert!(*first.entry(at).or_insert_with(|| together.clone()) == together, "{what}: other bits");
                }
            }
        });
    }
}

#[test]
fn the_level_decides_what_form_models_take_and_what_their_statistics_are_kept_under() {
    alone(|| {
        at_each_level(|level| {
            let form = |dtype| Form::inference(&Device::Cpu, dtype);
            let path = |dtype| precision::path(form(dtype), dtype).name();
            let packs = |products| level >= Level::Avx512 && Isa::Avx512.runs(products);
            let packed = |products, isa| Form::Fused(Multiply::Packed(products, isa));
            let f32 = match level {
                Level::Amx => (packed(Products::F32, Isa::Amx), "f32-tiles"),
                _ if packs(Products::F32) => (packed(Products::F32, Isa::Avx512), "f32-packed"),
                _ => (Form::Fused(Multiply::Gemm), "f32"),
            };
            let bf16 = match level {
                Level::Amx => (packed(Products::Bf16, Isa::Amx), "bf16-tiles"),
                _ if packs(Products::Bf16) => (packed(Products::Bf16, Isa::Avx512), "bf16-packed"),
                _ => (Form::Plain, "bf16"),
            };
            assert_eq!((form(DType::F32), path(DType::F32)), f32);
            assert_eq!((form(DType::BF16), path(DType::BF16)), bf16);
        });
    });
}

#[test]
fn instructions_that_are_not_there_are_refused_where_a_model_is_loaded() {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory("llama-gqa"))).unwrap();
    for products in [Products::F32, Products::Bf16] {
        for isa in [Isa::Avx512, Isa::Amx] {
            let form = Form::Fused(Multiply::Packed(products, isa));
            let loaded = checkpoint.load_in(form, DType::F32, &Device::Cpu);
            match isa.runs(products) {
                true => assert!(loaded.is_ok()),
                false => assert!(loaded.err().unwrap().to_string().contains(&format!("does not have {isa:?}"))),
            }
        }
    }
}
