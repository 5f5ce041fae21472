//! Checkpoints of a GPT-NeoX with outlier channels that compute the same function as the original.

use candle_core::{DType, Device, Result, Tensor, safetensors};
use std::collections::HashMap;
use std::path::Path;
use tempfile::TempDir;

/// One channel in this many has outliers.
const EVERY: usize = 16;

/// Construction of outlier channels.
#[derive(Clone, Copy, Debug)]
pub enum Outliers {
    /// A norm multiplies them, and the weights that read them are divided by as much. The factor is a power of two, so that
    /// every product keeps its value.
    Scaled(f64),
    /// A norm adds a constant to them, and the biases of the projections that read them take it back. The products with
    /// the constants are large and cancel, as those with the massive activations of large models do.
    Shifted(f64),
}

/// Writes a checkpoint in f32 in which the outliers are inputs of every projection that reads a norm.
pub fn with_outliers(original: &Path, outliers: Outliers) -> Result<TempDir> {
    let directory = tempfile::tempdir()?;
    for file in ["config.json", "tokenizer.json"] {
        std::fs::copy(original.join(file), directory.path().join(file))?;
    }
    let mut tensors = HashMap::new();
    for (name, tensor) in safetensors::load(original.join("model.safetensors"), &Device::Cpu)? {
        tensors.insert(name, tensor.to_dtype(DType::F64)?);
    }
    let layers =
        (0..).take_while(|layer| tensors.contains_key(&format!("gpt_neox.layers.{layer}.mlp.dense_h_to_4h.bias")));
    for layer in layers.collect::<Vec<_>>() {
        let full = |name: &str| format!("gpt_neox.layers.{layer}.{name}");
        change(&mut tensors, &full("input_layernorm"), &full("attention.query_key_value"), outliers)?;
        change(&mut tensors, &full("post_attention_layernorm"), &full("mlp.dense_h_to_4h"), outliers)?;
    }
    for tensor in tensors.values_mut() {
        *tensor = tensor.to_dtype(DType::F32)?;
    }
    safetensors::save(&tensors, directory.path().join("model.safetensors"))?;
    Ok(directory)
}

fn change(tensors: &mut HashMap<String, Tensor>, norm: &str, projection: &str, outliers: Outliers) -> Result<()> {
    let [norm_weight, norm_bias] = ["weight", "bias"].map(|part| format!("{norm}.{part}"));
    let [weight, bias] = ["weight", "bias"].map(|part| format!("{projection}.{part}"));
    let width = tensors[&norm_bias].dim(0)?;
    let in_channels = |outlier: f64, others: f64| {
        let values: Vec<f64> = (0..width).map(|channel| if channel % EVERY == 0 { outlier } else { others }).collect();
        Tensor::new(values, &Device::Cpu)
    };
    match outliers {
        Outliers::Scaled(factor) => {
            let (scale, inverse) = (in_channels(factor, 1.0)?, in_channels(factor.recip(), 1.0)?);
            for name in [&norm_weight, &norm_bias] {
                tensors.insert(name.clone(), (&tensors[name] * &scale)?);
            }
            tensors.insert(weight.clone(), tensors[&weight].broadcast_mul(&inverse)?);
        }
        Outliers::Shifted(constant) => {
            let shift = in_channels(constant, 0.0)?;
            let taken_back = tensors[&weight].matmul(&shift.unsqueeze(1)?)?.squeeze(1)?;
            tensors.insert(norm_bias.clone(), (&tensors[&norm_bias] + shift)?);
            tensors.insert(bias.clone(), (&tensors[&bias] - taken_back)?);
        }
    }
    Ok(())
}
