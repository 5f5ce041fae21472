//! The rate of the machine's matrix units: one large product, the best of several runs.

use anyhow::{Result, bail};
use candle_core::{DType, Device, Tensor};
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::gguf::TensorType;
use lm::models::ops::{Form, Linear, Multiply, Weight};
use lm::models::precision::{self, NumericPath};
use std::path::Path;
use std::time::Instant;

/// Rows, columns and depth of the product.
const SIZE: usize = 2_048;
const TRIES: usize = 8;

/// A product and the form in which it is taken.
pub struct Rate {
    x: Tensor,
    linear: Linear,
    form: Form,
}

impl Rate {
    /// `kernel`: the products of the model, with weights of the type that its weights have; `candle`: candle's own
    /// matmul in f32.
    pub fn new(name: &str, model: &Path, dtype: DType) -> Result<Self> {
        let (form, dtype) = match name {
            "kernel" => (Form::inference(&Device::Cpu, dtype), stored(model, dtype)?),
            "candle" => (Form::Plain, DType::F32),
            other => bail!("unknown layer rate-{other}"),
        };
        let x = Tensor::randn(0f32, 1.0, (SIZE, SIZE), &Device::Cpu)?;
        let weight = Tensor::randn(0f32, 1.0, (SIZE, SIZE), &Device::Cpu)?.to_dtype(dtype)?;
        let x = if form.is_fused() { x } else { x.to_dtype(dtype)? };
        Ok(Self { x, linear: Linear { weight: Weight::new(weight, form)?, bias: None }, form })
    }

    /// How its products are taken.
    pub fn path(&self) -> NumericPath {
        precision::path(self.form, DType::F32)
    }

    /// GFLOP/s.
    pub fn measure(&self) -> Result<f64> {
        let mut best = f64::INFINITY;
        for _ in 0..TRIES {
            let start = Instant::now();
            self.linear.forward(&self.x, self.form)?;
            best = best.min(start.elapsed().as_secs_f64());
        }
        Ok(2.0 * (SIZE as f64).powi(3) / best / 1e9)
    }
}

/// The type of packed weights: in f32 the one they are stored in.
fn stored(model: &Path, dtype: DType) -> Result<DType> {
    let checkpoint = Checkpoint::open(&ModelFiles::Directory(model.to_owned()))?;
    Ok(match (dtype, checkpoint.weights.main_kind(|_| true)) {
        (DType::F32, Some(TensorType::Plain(safetensors::Dtype::BF16)))
            if Form::inference(&Device::Cpu, dtype) != GEMM =>
        {
            DType::BF16
        }
        (DType::F32, Some(TensorType::Plain(safetensors::Dtype::F16)))
            if Form::inference(&Device::Cpu, dtype) != GEMM =>
        {
            DType::F16
        }
        (dtype, _) => dtype,
    })
}

/// Weights that are not packed are converted to f32 when they are loaded.
const GEMM: Form = Form::Fused(Multiply::Gemm);
