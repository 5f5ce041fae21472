//! A text's score does not depend on what it is scored with, bit for bit.

use crate::common::bits;
use crate::common::goldens::{CAUSAL, directory, expected};
use candle_core::{DType, Device};
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::demo::DEMO;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};
use lm::models::precision;
use lm::tokenizer::Tokenizer;

/// 65 sequences of 2 to 120 ids, in no order of length.
fn sequences(vocab: usize) -> Vec<Vec<u32>> {
    let length = |i: usize| 2 + (i * 37) % 119;
    let id = |i: usize, t: usize| ((i * 7919 + t * 104_729 + 17) % vocab) as u32;
    (0..65).map(|i| (0..length(i)).map(|t| id(i, t)).collect()).collect()
}

fn check(name: &str, model: &dyn CausalLm, sequences: &[Vec<u32>]) {
    let batch: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let together = model.token_stats(&batch).unwrap();
    for (i, sequence) in batch.iter().enumerate() {
        let alone = model.token_stats(&[sequence]).unwrap().remove(0);
        assert_eq!(alone.len(), sequence.len() - 1);
        assert!(bits(&alone) == bits(&together[i]), "{name}: sequence {i} of {} ids", sequence.len());
    }
}

/// A model in every form that has kernels of its own on this machine.
fn in_each_form(checkpoint: &Checkpoint, check: impl Fn(&str, &dyn CausalLm)) {
    let gemm = Form::Fused(Multiply::Gemm);
    check("gemm", checkpoint.load_in(gemm, DType::F32, &Device::Cpu).unwrap().causal().unwrap().as_ref());
    let halves = checkpoint.has_half_precision().then_some(DType::BF16);
    for dtype in [DType::F32].into_iter().chain(halves) {
        let form = checkpoint.form(dtype, &Device::Cpu).unwrap();
        if form.is_fused() && form != gemm {
            let model = checkpoint.load_in(form, dtype, &Device::Cpu).unwrap().causal().unwrap();
            check(precision::path(form, dtype).name(), model.as_ref());
        }
    }
}

#[test]
#[ignore = "slow: `.ci/full` runs it"]
fn a_text_alone_and_among_64_others_has_the_same_statistics_bit_for_bit() {
    for name in CAUSAL {
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
        let sequences = sequences(checkpoint.vocab_size());
        in_each_form(&checkpoint, |form, model| check(&format!("{name} by {form}"), model, &sequences));
    }
    let checkpoint = Checkpoint::open(&DEMO).unwrap();
    check(
        "demo",
        checkpoint.load(DType::F32, &Device::Cpu).unwrap().causal().unwrap().as_ref(),
        &sequences(checkpoint.vocab_size()),
    );
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let checkpoint = Checkpoint::open(&DEMO).unwrap();
    let sequences = sequences(checkpoint.vocab_size());
    let batch: Vec<&[u32]> = sequences.iter().map(Vec::as_slice).collect();
    let with = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let stats = pool.install(|| {
            checkpoint.load(DType::F32, &Device::Cpu).unwrap().causal().unwrap().token_stats(&batch).unwrap()
        });
        stats.iter().flat_map(|s| bits(s)).collect::<Vec<_>>()
    };
    let one = with(1);
    assert!([2, 3, 7].into_iter().all(|threads| with(threads) == one));
}

#[test]
fn real_texts_of_the_goldens_in_one_batch_score_as_alone() {
    for name in CAUSAL {
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory(name))).unwrap();
        let model = checkpoint.load(DType::F32, &Device::Cpu).unwrap().causal().unwrap();
        let tokenizer = Tokenizer::from_json(&std::fs::read(directory(name).join("tokenizer.json")).unwrap()).unwrap();
        let expected = expected(name);
        let texts = expected["texts"].as_array().unwrap().iter().map(|t| t["text"].as_str().unwrap());
        let ids = texts.map(|t| tokenizer.encode(t).unwrap().ids.to_vec()).filter(|ids| (2..=128).contains(&ids.len()));
        check(name, model.as_ref(), &ids.collect::<Vec<_>>());
    }
}
