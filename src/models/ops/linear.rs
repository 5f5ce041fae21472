//! Linear projections.

use super::elements::{elements, elements_mut, with_slice};
use super::form::Form;
use super::mlp::activate;
use super::trained::{FrozenProduct, is_tuned};
use super::weight::Weight;
use crate::models::arch::Activation;
use crate::models::kernels::gemm as matrix;
use crate::models::kernels::packed::Packed;
use candle_core::{CpuStorage, CustomOp1, CustomOp2, InplaceOp2, InplaceOp3, Layout, Result, Shape, Tensor, bail};
use gemm::Parallelism;
use rayon::prelude::*;

/// A projection `x w^T + b` with w `[out, in]`.
pub struct Linear {
    pub weight: Weight,
    pub bias: Option<Tensor>,
}

impl Linear {
    /// Maps x `[tokens, in]` to `[tokens, out]`.
    ///
    /// # Errors
    /// If shapes do not match, or the device fails.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match (&self.weight, form) {
            (Weight::Packed(packed), _) => {
                x.apply_op1_no_bwd(&PackedProduct { packed, bias: self.bias.as_ref(), activation: None })
            }
            (Weight::Plain(weight), Form::Fused(_)) => {
                x.apply_op2_no_bwd(weight, &Project { bias: self.bias.as_ref() })
            }
            (Weight::Plain(weight), Form::Plain) => {
                let y = if is_tuned(x, &[Some(weight)]) {
                    x.contiguous()?.apply_op1(FrozenProduct { weight: weight.clone() })?
                } else {
                    x.matmul(&weight.t()?)?
                };
                self.bias.as_ref().map_or(Ok(y.clone()), |b| y.broadcast_add(b))
            }
        }
    }

    /// The activation of `forward(x)`.
    ///
    /// # Errors
    /// As for [`Linear::forward`].
    pub fn forward_activated(&self, x: &Tensor, activation: Activation, form: Form) -> Result<Tensor> {
        match &self.weight {
            Weight::Packed(packed) => {
                let activation = Some(activation);
                x.apply_op1_no_bwd(&PackedProduct { packed, bias: self.bias.as_ref(), activation })
            }
            Weight::Plain(_) => activate(activation, self.forward(x, form)?, form),
        }
    }

    /// `residual + forward(x)`; the fused form writes into the storage of `residual`.
    ///
    /// # Errors
    /// As for [`Linear::forward`].
    pub fn add_to(&self, residual: Tensor, x: &Tensor, form: Form) -> Result<Tensor> {
        match (&self.weight, form) {
            (Weight::Packed(packed), _) => {
                residual.inplace_op2(x, &PackedProduct { packed, bias: self.bias.as_ref(), activation: None })?;
                Ok(residual)
            }
            (Weight::Plain(weight), Form::Fused(_)) => {
                residual.inplace_op3(x, weight, &AddProjection { bias: self.bias.as_ref() })?;
                Ok(residual)
            }
            (Weight::Plain(_), Form::Plain) => residual + self.forward(x, form)?,
        }
    }
}

/// Rows and columns of x `[m, k]` and w `[n, k]` as `[m, n, k]`.
fn product_shape(x: &Layout, [n, wk]: [usize; 2]) -> Result<[usize; 3]> {
    let (m, k) = x.shape().dims2()?;
    if k != wk {
        bail!("linear: input {:?} and weights {:?} do not match", x.shape(), [n, wk])
    }
    Ok([m, n, k])
}

/// Rows of n elements per task, about 64 KiB.
fn rows_at_once(n: usize) -> usize {
    (16_384 / n.max(1)).max(1)
}

fn add_bias(out: &mut [f32], bias: &Tensor) -> Result<()> {
    with_slice(bias, |bias| {
        if !out.len().is_multiple_of(bias.len().max(1)) {
            bail!("linear: {} biases for {} results", bias.len(), out.len())
        }
        let rows = out.par_chunks_exact_mut(bias.len().max(1)).with_min_len(rows_at_once(bias.len()));
        rows.for_each(|row| row.iter_mut().zip(bias).for_each(|(o, b)| *o += b));
        Ok(())
    })
}

/// Allocates the results of a product of m rows, initialised with the bias or with zeros. The writes are distributed
/// over the threads, since otherwise all but one of them would wait.
fn initial_results(m: usize, n: usize, bias: Option<&Tensor>) -> Result<Vec<f32>> {
    let filled = |row: &[f32]| {
        let mut out = Vec::with_capacity(m * n);
        let rows = out.spare_capacity_mut()[..m * n].par_chunks_exact_mut(n.max(1)).with_min_len(rows_at_once(n));
        rows.for_each(|out| out.iter_mut().zip(row).for_each(|(o, &value)| _ = o.write(value)));
        // SAFETY: every row was written completely: `row` has n elements, and there are m rows.
        unsafe { out.set_len(m * n) };
        out
    };
    with_bias(bias, n, |bias| bias.map_or_else(|| filled(&vec![0.0; n]), filled))
}

/// Calls a function with the bias of n outputs, if there is one.
fn with_bias<T>(bias: Option<&Tensor>, n: usize, function: impl FnOnce(Option<&[f32]>) -> T) -> Result<T> {
    match bias {
        None => Ok(function(None)),
        Some(bias) => with_slice(bias, |bias| {
            if bias.len() != n {
                bail!("linear: {} biases for {n} outputs", bias.len())
            }
            Ok(function(Some(bias)))
        }),
    }
}

struct PackedProduct<'a> {
    packed: &'a Packed,
    bias: Option<&'a Tensor>,
    activation: Option<Activation>,
}

impl CustomOp1 for PackedProduct<'_> {
    fn name(&self) -> &'static str {
        "project-packed"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let [m, n, _] = product_shape(xl, self.packed.shape())?;
        let x = elements(x, xl)?;
        let out = with_bias(self.bias, n, |bias| self.packed.multiply(x, bias, self.activation))?;
        Ok((CpuStorage::F32(out), Shape::from((m, n))))
    }
}

impl InplaceOp2 for PackedProduct<'_> {
    fn name(&self) -> &'static str {
        "add-packed-projection"
    }

    fn cpu_fwd(&self, out: &mut CpuStorage, out_l: &Layout, x: &CpuStorage, xl: &Layout) -> Result<()> {
        let [_, n, _] = product_shape(xl, self.packed.shape())?;
        let (out, x) = (elements_mut(out, out_l)?, elements(x, xl)?);
        with_bias(self.bias, n, |bias| self.packed.multiply_onto(out, x, bias))
    }
}

struct Project<'a> {
    bias: Option<&'a Tensor>,
}

impl CustomOp2 for Project<'_> {
    fn name(&self) -> &'static str {
        "project"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout, w: &CpuStorage, wl: &Layout) -> Result<(CpuStorage, Shape)> {
        let [m, n, k] = product_shape(xl, wl.shape().dims2()?.into())?;
        let mut out = initial_results(m, n, self.bias)?;
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
        let shape = product_shape(xl, wl.shape().dims2()?.into())?;
        let out = elements_mut(out, out_l)?;
        if let Some(bias) = self.bias {
            add_bias(out, bias)?;
        }
        matrix::linear(out, elements(x, xl)?, elements(w, wl)?, shape, true, Parallelism::Rayon(0));
        Ok(())
    }
}
