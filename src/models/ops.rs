//! The operations of the decoder, each in two forms with the same result.
//!
//! *Fused* runs the kernels of this crate on the CPU, for inference. *Plain* is built from candle's differentiable
//! operations and runs on every device: for training, and for inference where no kernel exists. candle's own fused
//! operations drop gradients without a word, so the plain form uses none of them.

use super::arch::Activation;
use super::kernels::attention::AttentionShape;
use super::kernels::{activation, attention, gemm as matrix, norm};
use super::rotary::RotaryTable;
use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, D, Device, InplaceOp1, InplaceOp3, Layout};
use candle_core::{Result, Shape, Storage, Tensor, bail};
use gemm::Parallelism;
use std::ops::Range;

/// Which form an operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Kernels on the CPU, f32, no gradients.
    Fused,
    /// candle's differentiable operations.
    Plain,
}

impl Form {
    /// The fastest form for inference on a device.
    pub fn inference(device: &Device) -> Self {
        if device.is_cpu() { Self::Fused } else { Self::Plain }
    }
}

/// A projection `x w^T + b` with w `[out, in]`.
pub struct Linear {
    pub weight: Tensor,
    pub bias: Option<Tensor>,
}

impl Linear {
    /// x `[tokens, in]` to `[tokens, out]`.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused => x.apply_op2_no_bwd(&self.weight, &Project { bias: self.bias.as_ref() }),
            Form::Plain => {
                let y = x.matmul(&self.weight.t()?)?;
                self.bias.as_ref().map_or(Ok(y.clone()), |b| y.broadcast_add(b))
            }
        }
    }

    /// `residual + forward(x)`; the fused form writes into the storage of `residual`.
    pub fn add_to(&self, residual: Tensor, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused => {
                residual.inplace_op3(x, &self.weight, &AddProjection { bias: self.bias.as_ref() })?;
                Ok(residual)
            }
            Form::Plain => residual + self.forward(x, form)?,
        }
    }
}

/// Layer normalisation with weight and bias `[hidden]`.
pub struct LayerNorm {
    pub weight: Tensor,
    pub bias: Tensor,
    pub eps: f64,
}

impl LayerNorm {
    /// x `[tokens, hidden]`, normalised row by row with the population variance.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused => x.apply_op3_no_bwd(&self.weight, &self.bias, &Normalise { eps: self.eps as f32 }),
            Form::Plain => {
                let centred = x.broadcast_sub(&x.mean_keepdim(D::Minus1)?)?;
                let variance = centred.sqr()?.mean_keepdim(D::Minus1)?;
                let unit = centred.broadcast_div(&(variance + self.eps)?.sqrt()?)?;
                unit.broadcast_mul(&self.weight)?.broadcast_add(&self.bias)
            }
        }
    }
}

/// Applies an activation; the fused form overwrites `x`.
pub fn activate(activation: Activation, x: Tensor, form: Form) -> Result<Tensor> {
    match (form, activation) {
        (Form::Fused, _) => x.inplace_op1(&activation).map(|()| x),
        (Form::Plain, Activation::Gelu) => x.gelu_erf(),
        (Form::Plain, Activation::GeluTanh) => x.gelu(),
        (Form::Plain, Activation::Relu) => x.relu(),
    }
}

/// Fused causal attention over qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`; CPU only.
pub fn fused_attention(
    qkv: &Tensor,
    sequences: &[Range<usize>],
    shape: AttentionShape,
    rotary: &RotaryTable,
) -> Result<Tensor> {
    qkv.apply_op1_no_bwd(&Attention { sequences, shape, rotary })
}

/// Calls `read` with the contiguous f32 elements of a CPU tensor.
pub fn with_slice<T>(tensor: &Tensor, read: impl FnOnce(&[f32]) -> Result<T>) -> Result<T> {
    let (storage, layout) = tensor.storage_and_layout();
    match &*storage {
        Storage::Cpu(storage) => read(elements(storage, layout)?),
        _ => bail!("a kernel of the CPU was given a tensor of another device"),
    }
}

fn elements<'a>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&values[start..end]),
        _ => bail!("a kernel of the CPU wants contiguous f32, not {:?} {layout:?}", storage.as_slice_dtype()),
    }
}

fn elements_mut<'a>(storage: &'a mut CpuStorage, layout: &Layout) -> Result<&'a mut [f32]> {
    match (storage, layout.contiguous_offsets()) {
        (CpuStorage::F32(values), Some((start, end))) => Ok(&mut values[start..end]),
        _ => bail!("a kernel of the CPU wants contiguous f32, not {layout:?}"),
    }
}

/// Names the element type for an error message.
trait DtypeName {
    fn as_slice_dtype(&self) -> candle_core::DType;
}

impl DtypeName for CpuStorage {
    fn as_slice_dtype(&self) -> candle_core::DType {
        candle_core::backend::BackendStorage::dtype(self)
    }
}

/// Rows and columns of x `[m, k]` and w `[n, k]` as `[m, n, k]`.
fn product_shape(x: &Layout, w: &Layout) -> Result<[usize; 3]> {
    let ((m, k), (n, wk)) = (x.shape().dims2()?, w.shape().dims2()?);
    if k != wk {
        bail!("linear: {:?} against {:?}", x.shape(), w.shape())
    }
    Ok([m, n, k])
}

fn add_bias(out: &mut [f32], bias: &Tensor) -> Result<()> {
    with_slice(bias, |bias| {
        for row in out.chunks_exact_mut(bias.len()) {
            row.iter_mut().zip(bias).for_each(|(o, b)| *o += b);
        }
        Ok(())
    })
}

struct Project<'a> {
    bias: Option<&'a Tensor>,
}

impl CustomOp2 for Project<'_> {
    fn name(&self) -> &'static str {
        "project"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout, w: &CpuStorage, wl: &Layout) -> Result<(CpuStorage, Shape)> {
        let [m, n, k] = product_shape(xl, wl)?;
        let mut out = vec![0f32; m * n];
        if let Some(bias) = self.bias {
            add_bias(&mut out, bias)?;
        }
        let (x, w) = (elements(x, xl)?, elements(w, wl)?);
        matrix::linear(&mut out, x, w, [m, n, k], self.bias.is_some(), Parallelism::Rayon(0));
        Ok((CpuStorage::F32(out), Shape::from((m, n))))
    }
}

struct AddProjection<'a> {
    bias: Option<&'a Tensor>,
}

impl InplaceOp3 for AddProjection<'_> {
    fn name(&self) -> &'static str {
        "add-projection"
    }

    fn cpu_fwd(
        &self,
        out: &mut CpuStorage,
        out_l: &Layout,
        x: &CpuStorage,
        xl: &Layout,
        w: &CpuStorage,
        wl: &Layout,
    ) -> Result<()> {
        let shape = product_shape(xl, wl)?;
        let out = elements_mut(out, out_l)?;
        if let Some(bias) = self.bias {
            add_bias(out, bias)?;
        }
        matrix::linear(out, elements(x, xl)?, elements(w, wl)?, shape, true, Parallelism::Rayon(0));
        Ok(())
    }
}

struct Normalise {
    eps: f32,
}

impl CustomOp3 for Normalise {
    fn name(&self) -> &'static str {
        "normalise"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        xl: &Layout,
        weight: &CpuStorage,
        wl: &Layout,
        bias: &CpuStorage,
        bl: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        let x = elements(x, xl)?;
        let mut out = vec![0f32; x.len()];
        norm::layer_norm(&mut out, x, elements(weight, wl)?, elements(bias, bl)?, self.eps);
        Ok((CpuStorage::F32(out), xl.shape().clone()))
    }
}

impl InplaceOp1 for Activation {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        activation::apply(*self, elements_mut(storage, layout)?);
        Ok(())
    }
}

struct Attention<'a> {
    sequences: &'a [Range<usize>],
    shape: AttentionShape,
    rotary: &'a RotaryTable,
}

impl CustomOp1 for Attention<'_> {
    fn name(&self) -> &'static str {
        "causal-attention"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, _) = layout.shape().dims2()?;
        let mut out = vec![0f32; tokens * self.shape.out_width()];
        attention::causal(&mut out, elements(qkv, layout)?, self.sequences, self.shape, self.rotary);
        Ok((CpuStorage::F32(out), Shape::from((tokens, self.shape.out_width()))))
    }
}
