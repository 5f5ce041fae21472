//! Accuracy of products where channels have outliers: log-probabilities of a GPT-NeoX, with outlier channels added so that
//! its function stays the same, in each kind of products beside those of the original in f32. Where every text has a
//! `label`, also the AUROC of the default methods.
//!
//!     cargo bench --bench outliers -- MODEL_DIR TEXTS.jsonl [--limit N]
//!
//! Products that the machine has no instructions for are emulated, bit for bit and slowly.

#[path = "../tests/it/common/outliers.rs"]
mod outliers;

use anyhow::{Context, Result};
use candle_core::{DType, Device};
use kernels::packed::{Isa, Products};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};
use lm::tokenizer::{self, TokenizerError};
use mia::TokenStats;
use mia::methods::{Method, TextStats, WeightContext, default_methods, score, zlib_bytes};
use mia::statistics::{LabelledScore, Roc};
use outliers::{Outliers, with_outliers};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// A line of the texts.
#[derive(Deserialize)]
struct Line {
    text: String,
    label: Option<u8>,
    #[serde(skip)]
    ids: Vec<u32>,
}

fn main() -> Result<()> {
    let (mut paths, mut limit) = (Vec::new(), usize::MAX);
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
    let lines = read(model, texts, limit)?;
    println!("{} texts, {} tokens", lines.len(), lines.iter().map(|line| line.ids.len()).sum::<usize>());
    println!("| outliers | products | worst | mean | AUROC, worst |\n|---|---|---|---|---|");
    let kinds = [
        ("none", Outliers::Scaled(1.0)),
        ("scaled by 2^8", Outliers::Scaled(256.0)),
        ("shifted by 32", Outliers::Shifted(32.0)),
        ("shifted by 256", Outliers::Shifted(256.0)),
        ("shifted by 2,048", Outliers::Shifted(2048.0)),
    ];
    let original = token_stats(model, Form::Fused(Multiply::Gemm), &lines)?;
    let aurocs = aurocs(&lines, &original)?;
    for (name, kind) in kinds {
        let changed = with_outliers(model, kind)?;
        for (products, form) in forms() {
            let stats = token_stats(changed.path(), form, &lines)?;
            let errors = differences(&log_probabilities(&original), &log_probabilities(&stats));
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            let auroc = worst(&differences(&aurocs, &self::aurocs(&lines, &stats)?));
            println!("| {name} | {products} | {} | {mean:.1e} | {auroc} |", worst(&errors));
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
        ("three terms", packed(Products::F32, true)),
        ("bf16", packed(Products::Bf16, true)),
    ];
    kinds.into_iter().filter_map(|(name, form)| Some((name, form?))).collect()
}

fn read(model: &Path, texts: &Path, limit: usize) -> Result<Vec<Line>> {
    let find = |file: &'static str| -> Result<_, TokenizerError> { Ok(std::fs::read(model.join(file)).ok()) };
    let (tokenizer, _) = tokenizer::from_files(find)?;
    let texts = std::fs::read_to_string(texts)?;
    let line = |line: &str| -> Result<Line> {
        let mut line: Line = serde_json::from_str(line)?;
        line.ids = tokenizer.encode(&line.text)?.ids.to_vec();
        Ok(line)
    };
    texts.lines().take(limit).map(line).collect()
}

/// The statistics of every text, in batches of 16.
fn token_stats(directory: &Path, form: Form, lines: &[Line]) -> Result<Vec<Vec<TokenStats>>> {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(directory.to_owned()))?;
    let model = checkpoint.load_in(form, DType::F32, &Device::Cpu)?.causal().context("the model is not causal")?;
    let mut stats = Vec::new();
    for lines in lines.chunks(16) {
        stats.extend(model.token_stats(&lines.iter().map(|line| &line.ids[..]).collect::<Vec<_>>())?);
    }
    Ok(stats)
}

/// Computes the AUROC of every default method; empty if a text has no label.
fn aurocs(lines: &[Line], stats: &[Vec<TokenStats>]) -> Result<Vec<f64>> {
    if lines.iter().any(|line| line.label.is_none()) {
        return Ok(Vec::new());
    }
    let auroc = |method: &Method| -> Result<f64> {
        let samples = lines.iter().zip(stats).map(|(line, tokens)| {
            let zlib_bytes = &|| zlib_bytes(&line.text);
            let context = WeightContext { text: &line.text, dataset: &[] };
            let text = TextStats { tokens, ids: &[], zlib_bytes, passes: &[], token_counts: &[], context };
            Ok(LabelledScore { score: score(method, &text)?, member: line.label == Some(1) })
        });
        Ok(Roc::new(&samples.collect::<Result<Vec<_>>>()?)?.auroc())
    };
    default_methods().iter().map(|labelled| auroc(&labelled.method)).collect()
}

fn log_probabilities(stats: &[Vec<TokenStats>]) -> Vec<f64> {
    stats.iter().flatten().map(|token| token.lp).collect()
}

fn differences(left: &[f64], right: &[f64]) -> Vec<f64> {
    left.iter().zip(right).map(|(a, b)| (a - b).abs()).collect()
}

fn worst(differences: &[f64]) -> String {
    let worst = differences.iter().copied().reduce(f64::max);
    worst.map_or_else(|| "not labelled".to_owned(), |worst| format!("{worst:.1e}"))
}
