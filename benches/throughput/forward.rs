//! Forward passes without the service.

use anyhow::{Context, Result};
use candle_core::{DType, Device};
use lm::models::CausalLm;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::ops::{Form, Multiply};
use lm::tokenizer::Tokenizer;
use std::path::Path;

/// The token budget of a batch, as the engine uses it on the CPU unless it is calibrated.
const BUDGET: usize = 2_048;

/// A model and the batches that it runs.
pub struct Forward {
    model: Box<dyn CausalLm>,
    batches: Vec<Vec<Vec<u32>>>,
}

impl Forward {
    /// Creates the layer `forward` or `gemm`, each with an optional prefix `single-`.
    pub fn new(layer: &str, model: &Path, texts: &[String], dtype: DType) -> Result<Self> {
        let checkpoint = Checkpoint::open(&ModelFiles::Directory(model.to_owned()))?;
        // With a budget of 0, every text is a batch of its own.
        let (kind, budget) = layer.strip_prefix("single-").map_or((layer, BUDGET), |kind| (kind, 0));
        let (form, dtype) = match kind {
            "forward" => (checkpoint.form(dtype, &Device::Cpu)?, dtype),
            "gemm" => (Form::Fused(Multiply::Gemm), DType::F32),
            other => anyhow::bail!("unknown layer {other}"),
        };
        let loaded = checkpoint.load_in(form, dtype, &Device::Cpu)?.causal().context("not a causal model")?;
        Ok(Self { model: loaded, batches: batches(token_ids(model, texts)?, budget) })
    }

    pub fn run(&self) -> Result<()> {
        for batch in &self.batches {
            let sequences: Vec<&[u32]> = batch.iter().map(Vec::as_slice).collect();
            self.model.token_stats(&sequences)?;
        }
        Ok(())
    }
}

/// The token ids of every text.
pub fn token_ids(model: &Path, texts: &[String]) -> Result<Vec<Vec<u32>>> {
    let tokenizer = Tokenizer::from_json(&ModelFiles::Directory(model.to_owned()).open("tokenizer.json")?)?;
    texts.iter().map(|text| Ok(tokenizer.encode(text)?.ids.to_vec())).collect()
}

fn batches(texts: Vec<Vec<u32>>, budget: usize) -> Vec<Vec<Vec<u32>>> {
    let (mut batches, mut room): (Vec<Vec<Vec<u32>>>, usize) = (Vec::new(), 0);
    for ids in texts {
        if room < ids.len() || batches.is_empty() {
            batches.push(Vec::new());
            room = budget;
        }
        room = room.saturating_sub(ids.len());
        if let Some(batch) = batches.last_mut() {
            batch.push(ids);
        }
    }
    batches
}
