//! Evaluates the saved model: the AUROC of every default method, members against non-members.

use crate::data::Split;
use anyhow::{Context, Result};
use candle_core::{DType, Device};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::tokenizer::Tokenizer;
use mia::methods::{TextStats, WeightContext, default_methods, score, zlib_bytes};
use mia::statistics::{LabelledScore, Roc};
use std::path::Path;

/// Loads the model as the service does and prints one line per method.
pub fn print_table(id: &str, directory: &Path, split: &Split) -> Result<()> {
    let files = ModelFiles::Directory(directory.to_owned());
    let model = Checkpoint::open(&files)?.load(DType::F32, &Device::Cpu)?.causal().context("not a causal model")?;
    let tokenizer = Tokenizer::from_json(&files.open("tokenizer.json")?)?;
    let mut texts = Vec::new();
    for (class, member) in [(&split.members, true), (&split.non_members, false)] {
        for text in class.iter().map(|t| &t.text) {
            let ids = tokenizer.encode(text)?.ids;
            texts.push((zlib_bytes(text), model.token_stats(&[&ids])?.remove(0), member));
        }
    }
    println!("{id}");
    for method in default_methods() {
        let mut samples = Vec::with_capacity(texts.len());
        for (zlib_bytes, tokens, member) in &texts {
            let (context, zlib_bytes) = (WeightContext { text: "", dataset: &[] }, || *zlib_bytes);
            let text = TextStats { tokens, ids: &[], zlib_bytes: &zlib_bytes, passes: &[], token_counts: &[], context };
            samples.push(LabelledScore { score: score(&method.method, &text)?, member: *member });
        }
        let roc = Roc::new(&samples)?;
        println!(
            "  {:40} AUROC {:.3}  TPR at 5 % FPR {:.3}",
            method.label,
            roc.auroc(),
            roc.tpr_at_fpr(0.05, 0.95).tpr
        );
    }
    Ok(())
}
