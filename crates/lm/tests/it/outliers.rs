//! Channels with outliers, as large models have them, do not take products in tiles further than f32 goes.

use crate::common::goldens::{directory, expected};
use crate::common::outliers::{Outliers, with_outliers};
use candle_core::{DType, Device};
use kernels::packed::{Isa, Products};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};
use std::path::Path;

const GOLDEN: &str = "gptneox-parallel";

/// By the fastest instructions that have the bits of tiles.
fn tiled() -> Form {
    let isa = Isa::available(Products::F32).into_iter().rfind(|isa| isa.is_tiled()).unwrap();
    Form::Fused(Multiply::Packed(Products::F32, isa))
}

/// The log-probabilities of the texts of the golden.
fn log_probabilities(directory: &Path, form: Form) -> Vec<f64> {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory.to_owned())).unwrap();
    let model = checkpoint.load_in(form, DType::F32, &Device::Cpu).unwrap().causal().unwrap();
    let context = checkpoint.context().unwrap();
    let ids = expected(GOLDEN)["texts"].as_array().unwrap().clone();
    let ids = ids.iter().map(|text| serde_json::from_value(text["ids"].clone()).unwrap());
    let ids: Vec<Vec<u32>> = ids.filter(|ids: &Vec<u32>| ids.len() > 1 && ids.len() <= context).collect();
    let batch: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
    let stats = model.token_stats(&batch).unwrap();
    assert!(stats.len() > 3);
    stats.into_iter().flatten().map(|token| token.lp).collect()
}

/// A term is relative to its number, so that powers of two go through all of them.
#[test]
fn channels_that_are_scaled_and_scaled_back_change_no_bit() {
    let [original, scaled] =
        [1.0, 256.0].map(|factor| with_outliers(&directory(GOLDEN), Outliers::Scaled(factor)).unwrap());
    let [a, b] = [&original, &scaled].map(|model| log_probabilities(model.path(), tiled()));
    assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()));
}

/// Constants of 32 where norms give numbers about 1: f32 itself loses six of its bits there.
#[test]
fn large_products_that_cancel_stay_as_near_as_sums_in_f32() {
    let shifted = with_outliers(&directory(GOLDEN), Outliers::Shifted(32.0)).unwrap();
    let exact = log_probabilities(&directory(GOLDEN), tiled());
    let worst = |form| {
        let near = log_probabilities(shifted.path(), form);
        exact.iter().zip(&near).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    let [terms, f32] = [tiled(), Form::Fused(Multiply::Gemm)].map(worst);
    println!("three terms: {terms:.1e}, f32: {f32:.1e}");
    assert!(terms < 2.0 * f32, "{terms:e}, {f32:e}");
}
