//! How exact products are where channels have outliers: log-probabilities of a GPT-NeoX, with outlier channels added so that
//! its function stays the same, in each kind of products beside those of the original in f32.
//!
//!     cargo bench --bench outliers -- MODEL_DIR TEXTS.jsonl [--limit N]
//!
//! Products that the machine has no instructions for are emulated, bit for bit and slowly.

#[path = "../tests/it/common/outliers.rs"]
mod outliers;

use anyhow::{Context, Result};
use candle_core::{DType, Device};
use outliers::{Outliers, with_outliers};
use pdr_audit::models::checkpoint::Checkpoint;
use pdr_audit::models::files::ModelFiles;
use pdr_audit::models::kernels::packed::{Isa, Products};
use pdr_audit::models::ops::{Form, Multiply};
use pdr_audit::token_stats::TokenStats;
use pdr_audit::tokenizer::{self, TokenizerError};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn main() -> Result<()> {
    let (mut paths, mut limit) = (Vec::new(), 20);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--limit" => limit = arguments.next().context("--limit N")?.parse()?,
            // Added by cargo bench.
            "--bench" => {}
            _ => paths.push(PathBuf::from(argument)),
        }
    }
    let [model, texts] = &paths[..] else {
        println!("nothing to measure: outliers MODEL_DIR TEXTS.jsonl [--limit N]");
        return Ok(());
    };
    let ids = token_ids(model, texts, limit)?;
    println!("{} texts, {} tokens", ids.len(), ids.iter().map(Vec::len).sum::<usize>());
    println!("| outliers | products | worst | mean |\n|---|---|---|---|");
    let kinds = [
        ("none", Outliers::Scaled(1.0)),
        ("scaled by 2^8", Outliers::Scaled(256.0)),
        ("shifted by 32", Outliers::Shifted(32.0)),
        ("shifted by 256", Outliers::Shifted(256.0)),
        ("shifted by 2,048", Outliers::Shifted(2048.0)),
    ];
    let original = log_probabilities(model, Form::Fused(Multiply::Gemm), &ids)?;
    for (name, kind) in kinds {
        let changed = with_outliers(model, kind)?;
        for (products, form) in forms() {
            let near = log_probabilities(changed.path(), form, &ids)?;
            let errors: Vec<f64> = original.iter().zip(&near).map(|(a, b)| (a - b).abs()).collect();
            let worst = errors.iter().copied().fold(0.0, f64::max);
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            println!("| {name} | {products} | {worst:.1e} | {mean:.1e} |");
        }
    }
    Ok(())
}

/// Each kind of products, by the fastest instructions that have its bits.
fn forms() -> Vec<(&'static str, Form)> {
    let packed = |products, tiled| {
        let isas = Isa::available(products).into_iter().rfind(|isa| isa.is_tiled() == tiled);
        isas.map(|isa| Form::Fused(Multiply::Packed(products, isa)))
    };
    let kinds = [
        ("f32", packed(Products::F32, false)),
        ("two terms", packed(Products::Split, true)),
        ("three terms", packed(Products::F32, true)),
        ("bf16", packed(Products::Bf16, true)),
    ];
    kinds.into_iter().filter_map(|(name, form)| Some((name, form?))).collect()
}

fn token_ids(model: &Path, texts: &Path, limit: usize) -> Result<Vec<Vec<u32>>> {
    let find = |file: &'static str| -> Result<_, TokenizerError> { Ok(std::fs::read(model.join(file)).ok()) };
    let (tokenizer, _) = tokenizer::from_files(find)?;
    let lines = std::fs::read_to_string(texts)?;
    let ids = |line: &str| -> Result<Vec<u32>> {
        let value: Value = serde_json::from_str(line)?;
        Ok(tokenizer.encode(value["text"].as_str().context("a line has no `text`")?)?.ids.to_vec())
    };
    lines.lines().take(limit).map(ids).collect()
}

fn log_probabilities(directory: &Path, form: Form, ids: &[Vec<u32>]) -> Result<Vec<f64>> {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory.to_owned()))?;
    let model = checkpoint.load_in(form, DType::F32, &Device::Cpu)?.causal().context("the model is not causal")?;
    let batch: Vec<&[u32]> = ids.iter().map(Vec::as_slice).collect();
    let stats: Vec<Vec<TokenStats>> = model.token_stats(&batch)?;
    Ok(stats.into_iter().flatten().map(|token| token.lp).collect())
}
