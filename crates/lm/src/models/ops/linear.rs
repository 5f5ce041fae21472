//! Linear projections.

use super::elements::{elements, elements_mut, product, with_slice};
use super::form::Form;
use super::mlp::activate;
use super::trained::{FrozenProduct, is_tuned};
use super::weight::Weight;
use crate::models::arch::Activation;
#[cfg(feature = "cuda")]
use crate::models::cuda::{self, ProductShape};
use candle_core::{
    CpuStorage, CustomOp1, CustomOp2, InplaceOp1, InplaceOp2, InplaceOp3, Layout, Result, Shape, Tensor, bail,
};
#[cfg(feature = "cuda")]
use candle_core::{CudaStorage, backend::BackendStorage};
use gemm::Parallelism;
use kernels::activation;
use kernels::gemm as matrix;
use kernels::packed::Packed;
use rayon::prelude::*;

/// A projection `x w^T + b` with w `[out, in]`.
pub struct Linear {
    pub weight: Weight,
    pub bias: Option<Tensor>,
}

impl Linear {
    /// Maps x `[tokens, in]` to `[tokens, out]`.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match (&self.weight, form) {
            (Weight::Packed(packed), _) => {
                x.apply_op1_no_bwd(&PackedProduct { packed, bias: self.bias.as_ref(), activation: None })
            }
            (Weight::Plain(weight), Form::Fused(_)) => {
                x.apply_op2_no_bwd(weight, &Project { bias: self.bias.as_ref(), activation: None })
            }
            (Weight::Plain(weight), Form::Gpu(dtype)) => {
                x.to_dtype(dtype)?.apply_op2_no_bwd(weight, &Project { bias: self.bias.as_ref(), activation: None })
            }
            (Weight::Plain(weight), Form::Plain) => {
                let y = if is_tuned(x, &[Some(weight)]) {
                    x.contiguous()?.apply_op1(FrozenProduct { weight: weight.clone() })?
                } else {
                    product(x, weight, true)?
                };
                self.bias.as_ref().map_or(Ok(y.clone()), |b| y.broadcast_add(b))
            }
        }
    }

    /// As [`Linear::forward`], but in the form of a GPU without the bias, which is given instead: the next step adds it
    /// at no cost.
    pub fn forward_without_bias(&self, x: &Tensor, form: Form) -> Result<(Tensor, Option<&Tensor>)> {
        match (&self.weight, form) {
            (Weight::Plain(weight), Form::Gpu(dtype)) => {
                let project = Project { bias: None, activation: None };
                Ok((x.to_dtype(dtype)?.apply_op2_no_bwd(weight, &project)?, self.bias.as_ref()))
            }
            _ => Ok((self.forward(x, form)?, None)),
        }
    }

    /// The activation of `forward(x)`.
    pub fn forward_activated(&self, x: &Tensor, activation: Activation, form: Form) -> Result<Tensor> {
        match (&self.weight, form) {
            (Weight::Packed(packed), _) => {
                let activation = Some(activation);
                x.apply_op1_no_bwd(&PackedProduct { packed, bias: self.bias.as_ref(), activation })
            }
            (Weight::Plain(weight), Form::Gpu(dtype)) => {
                let project = Project { bias: self.bias.as_ref(), activation: Some(activation) };
                x.to_dtype(dtype)?.apply_op2_no_bwd(weight, &project)
            }
            (Weight::Plain(_), _) => activate(activation, self.forward(x, form)?, form),
        }
    }

    /// `residual + forward(x)`; all but the plain form write into the storage of `residual`, which in the form of a GPU
    /// may be in f32.
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
            (Weight::Plain(weight), Form::Gpu(dtype)) => {
                let x = x.to_dtype(dtype)?;
                residual.inplace_op3(&x, weight, &AddProjection { bias: self.bias.as_ref() })?;
                Ok(residual)
            }
            (Weight::Plain(_), Form::Plain) => residual + self.forward(x, form)?,
        }
    }
}

/// Adds `bias` `[width]` to the rows of x `[rows, width]`, in place and without gradients.
pub fn add_bias(x: &Tensor, bias: &Tensor) -> Result<()> {
    x.inplace_op1(&AddBias(bias))
}

struct AddBias<'a>(&'a Tensor);

impl InplaceOp1 for AddBias<'_> {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, layout: &Layout) -> Result<()> {
        add_to_rows(elements_mut(x, layout)?, self.0)
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &mut CudaStorage, layout: &Layout) -> Result<()> {
        crate::models::cuda::activate((x, layout), Some(self.0), None)
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

fn add_to_rows(out: &mut [f32], bias: &Tensor) -> Result<()> {
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
    /// Of the product and the bias.
    activation: Option<Activation>,
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
        self.activation.inspect(|activation| activation::apply(*activation, &mut out));
        Ok((CpuStorage::F32(out), Shape::from((m, n))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &CudaStorage, xl: &Layout, w: &CudaStorage, wl: &Layout) -> Result<(CudaStorage, Shape)> {
        let [rows, columns, inner] = product_shape(xl, wl.shape().dims2()?.into())?;
        let shape = ProductShape { batch: 1, rows, inner, columns, is_transposed: true };
        let mut out = cuda::multiply((x, xl), (w, wl), shape, x.dtype())?;
        let result = Shape::from((rows, columns));
        if self.bias.is_some() || self.activation.is_some() {
            cuda::activate((&mut out, &Layout::contiguous(&result)), self.bias, self.activation)?;
        }
        Ok((out, result))
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
            add_to_rows(out, bias)?;
        }
        matrix::linear(out, elements(x, xl)?, elements(w, wl)?, shape, true, Parallelism::Rayon(0));
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        out: &mut CudaStorage,
        out_l: &Layout,
        x: &CudaStorage,
        xl: &Layout,
        w: &CudaStorage,
        wl: &Layout,
    ) -> Result<()> {
        let [rows, columns, inner] = product_shape(xl, wl.shape().dims2()?.into())?;
        let shape = ProductShape { batch: 1, rows, inner, columns, is_transposed: true };
        cuda::add_multiplied((&mut *out, out_l), (x, xl), (w, wl), shape)?;
        self.bias.map_or(Ok(()), |bias| cuda::activate((out, out_l), Some(bias), None))
    }
}
