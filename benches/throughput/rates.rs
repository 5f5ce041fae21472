//! What the machine's matrix units give: one large product, the best of a few.

use anyhow::{Result, bail};
use candle_core::{DType, Device, Tensor};
use pdr_audit::models::ops::{Form, Linear, Weight};
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
    /// `kernel`: the fastest kernel of this machine for the type; `candle`: candle's own matmul in f32.
    pub fn new(name: &str, dtype: DType) -> Result<Self> {
        let (form, dtype) = match name {
            "kernel" => (Form::inference(&Device::Cpu, dtype), dtype),
            "candle" => (Form::Plain, DType::F32),
            other => bail!("no layer is called rate-{other}"),
        };
        let x = Tensor::randn(0f32, 1.0, (SIZE, SIZE), &Device::Cpu)?;
        let weight = Tensor::randn(0f32, 1.0, (SIZE, SIZE), &Device::Cpu)?.to_dtype(dtype)?;
        let x = if form.is_fused() { x } else { x.to_dtype(dtype)? };
        Ok(Self { x, linear: Linear { weight: Weight::new(weight, form)?, bias: None }, form })
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
