//! Checkpoints of GPT-2 of any size, whose scores mean nothing.

use half::bf16;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Clone, Copy)]
pub struct Gpt2 {
    pub vocab: usize,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub positions: usize,
}

impl Gpt2 {
    /// Writes configuration and weights, these stored in bf16, so that loading has to make its own copy of each.
    pub fn write(&self, directory: &Path) {
        let Self { vocab, hidden, layers, heads, positions } = *self;
        let config = json!({
            "model_type": "gpt2", "vocab_size": vocab, "n_embd": hidden, "n_head": heads, "n_layer": layers,
            "n_positions": positions,
        });
        std::fs::write(directory.join("config.json"), config.to_string()).unwrap();
        let value = |i: usize| bf16::from_f32((i % 251) as f32 * 1e-4).to_le_bytes();
        let data: BTreeMap<String, (Vec<usize>, Vec<u8>)> = self
            .shapes()
            .into_iter()
            .map(|(name, shape)| {
                let bytes = (0..shape.iter().product()).flat_map(value).collect();
                (name, (shape, bytes))
            })
            .collect();
        let views = data
            .iter()
            .map(|(name, (shape, bytes))| (name, TensorView::new(Dtype::BF16, shape.clone(), bytes).unwrap()));
        std::fs::write(directory.join("model.safetensors"), serialize(views, None).unwrap()).unwrap();
    }

    fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let hidden = self.hidden;
        let mut shapes = vec![
            ("wte.weight".to_owned(), vec![self.vocab, hidden]),
            ("wpe.weight".to_owned(), vec![self.positions, hidden]),
            ("ln_f.weight".to_owned(), vec![hidden]),
            ("ln_f.bias".to_owned(), vec![hidden]),
        ];
        for layer in 0..self.layers {
            let projections = [("attn.c_attn", hidden, 3 * hidden), ("attn.c_proj", hidden, hidden)];
            let mlp = [("mlp.c_fc", hidden, 4 * hidden), ("mlp.c_proj", 4 * hidden, hidden)];
            for (name, from, to) in projections.into_iter().chain(mlp) {
                shapes.push((format!("h.{layer}.{name}.weight"), vec![from, to]));
                shapes.push((format!("h.{layer}.{name}.bias"), vec![to]));
            }
            for name in ["ln_1.weight", "ln_1.bias", "ln_2.weight", "ln_2.bias"] {
                shapes.push((format!("h.{layer}.{name}"), vec![hidden]));
            }
        }
        shapes
    }
}
