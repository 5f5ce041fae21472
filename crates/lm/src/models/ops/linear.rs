//! Linear projections.

use super::elements::{elements, elements_mut, is_tuned, product, with_slice};
use super::form::Form;
use super::mlp::activate;
use super::weight::{TensorSource, Weight};
use crate::models::arch::Activation;
#[cfg(feature = "cuda")]
use crate::models::cuda::{self, ProductShape};
use crate::models::error::ModelError;
use candle_core::{CpuStorage, CustomOp1, InplaceOp1, InplaceOp2, Layout, Result, Shape, Tensor, bail};
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
    /// A projection of `shape` `[out, in]` with the tensors `{name}.weight` and, if it has a bias, `{name}.bias`.
    pub fn load(
        name: &str,
        shape: [usize; 2],
        has_bias: bool,
        form: Form,
        source: TensorSource<'_>,
    ) -> std::result::Result<Self, ModelError> {
        let weight = Weight::load(&format!("{name}.weight"), shape, form, source)?;
        let bias = has_bias.then(|| source.tensor(&format!("{name}.bias"), &shape[..1])).transpose()?;
        Ok(Self { weight, bias })
    }

    /// Maps x `[tokens, in]` to `[tokens, out]`.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match (&self.weight, form) {
            (Weight::Plain(weight), Form::Plain) => {
                let y = if is_tuned(x, &[Some(weight)]) {
                    x.contiguous()?.apply_op1(Project { weight: weight.clone(), bias: None, activation: None })?
                } else {
                    product(x, weight, true)?
                };
                self.bias.as_ref().map_or(Ok(y.clone()), |b| y.broadcast_add(b))
            }
            _ => self.projected(x, self.bias.as_ref(), None, form),
        }
    }

    /// As [`Linear::forward`], but in the form of a GPU without the bias, which is given instead: the next step adds it
    /// at no cost.
    pub fn forward_without_bias(&self, x: &Tensor, form: Form) -> Result<(Tensor, Option<&Tensor>)> {
        match (&self.weight, form) {
            (Weight::Plain(_), Form::Gpu(_)) => Ok((self.projected(x, None, None, form)?, self.bias.as_ref())),
            _ => Ok((self.forward(x, form)?, None)),
        }
    }

    /// The activation of `forward(x)`.
    pub fn forward_activated(&self, x: &Tensor, activation: Activation, form: Form) -> Result<Tensor> {
        match (&self.weight, form) {
            (Weight::Packed(_) | Weight::Parts(_), _) | (_, Form::Gpu(_)) => {
                self.projected(x, self.bias.as_ref(), Some(activation), form)
            }
            (Weight::Plain(_), _) => activate(activation, self.forward(x, form)?, form),
        }
    }

    /// The product by kernels, without gradients.
    fn projected(
        &self,
        x: &Tensor,
        bias: Option<&Tensor>,
        activation: Option<Activation>,
        form: Form,
    ) -> Result<Tensor> {
        match &self.weight {
            Weight::Packed(packed) => x.apply_op1_no_bwd(&PackedProduct { packed, bias, activation }),
            Weight::Parts(parts) => {
                let (mut products, mut start) = (Vec::with_capacity(parts.len()), 0);
                for packed in parts {
                    let rows = packed.shape()[0];
                    let bias = bias.map(|bias| bias.narrow(0, start, rows)).transpose()?;
                    products.push(x.apply_op1_no_bwd(&PackedProduct { packed, bias: bias.as_ref(), activation })?);
                    start += rows;
                }
                Tensor::cat(&products, 1)
            }
            Weight::Plain(weight) => {
                let project = Project { weight: weight.clone(), bias: bias.cloned(), activation };
                as_input(x, form)?.apply_op1_no_bwd(&project)
            }
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
            (Weight::Parts(_), _) | (Weight::Plain(_), Form::Plain) => residual + self.forward(x, form)?,
            (Weight::Plain(weight), _) => {
                let project = Project { weight: weight.clone(), bias: self.bias.clone(), activation: None };
                residual.inplace_op2(&as_input(x, form)?, &project)?;
                Ok(residual)
            }
        }
    }
}

/// x in the type that products of the form take.
fn as_input(x: &Tensor, form: Form) -> Result<Tensor> {
    if let Form::Gpu(dtype) = form { x.to_dtype(dtype) } else { Ok(x.clone()) }
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
        cuda::activate((x, layout), Some(self.0), None)
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

/// A product with weights `[out, in]`. Only x has a gradient, and only without a bias and an activation.
struct Project {
    weight: Tensor,
    bias: Option<Tensor>,
    /// Of the product and the bias.
    activation: Option<Activation>,
}

impl CustomOp1 for Project {
    fn name(&self) -> &'static str {
        "project"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let shape @ [m, n, _] = product_shape(xl, self.weight.dims2()?.into())?;
        let mut out = initial_results(m, n, self.bias.as_ref())?;
        let x = elements(x, xl)?;
        with_slice(&self.weight, |w| {
            matrix::linear(&mut out, x, w, shape, self.bias.is_some(), Parallelism::Rayon(0));
            Ok(())
        })?;
        self.activation.inspect(|activation| activation::apply(*activation, &mut out));
        Ok((CpuStorage::F32(out), Shape::from((m, n))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &CudaStorage, xl: &Layout) -> Result<(CudaStorage, Shape)> {
        let [rows, columns, inner] = product_shape(xl, self.weight.dims2()?.into())?;
        let shape = ProductShape { batch: 1, rows, inner, columns, is_transposed: true };
        let mut out = cuda::multiply((x, xl), &self.weight, shape, x.dtype())?;
        let result = Shape::from((rows, columns));
        if self.bias.is_some() || self.activation.is_some() {
            cuda::activate((&mut out, &Layout::contiguous(&result)), self.bias.as_ref(), self.activation)?;
        }
        Ok((out, result))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient.contiguous()?.matmul(&self.weight).map(Some)
    }
}

impl InplaceOp2 for Project {
    fn name(&self) -> &'static str {
        "add-projection"
    }

    fn cpu_fwd(&self, out: &mut CpuStorage, out_l: &Layout, x: &CpuStorage, xl: &Layout) -> Result<()> {
        let shape = product_shape(xl, self.weight.dims2()?.into())?;
        let (out, x) = (elements_mut(out, out_l)?, elements(x, xl)?);
        if let Some(bias) = &self.bias {
            add_to_rows(out, bias)?;
        }
        with_slice(&self.weight, |w| {
            matrix::linear(out, x, w, shape, true, Parallelism::Rayon(0));
            Ok(())
        })
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, out: &mut CudaStorage, out_l: &Layout, x: &CudaStorage, xl: &Layout) -> Result<()> {
        let [rows, columns, inner] = product_shape(xl, self.weight.dims2()?.into())?;
        let shape = ProductShape { batch: 1, rows, inner, columns, is_transposed: true };
        cuda::add_multiplied((&mut *out, out_l), (x, xl), &self.weight, shape)?;
        self.bias.as_ref().map_or(Ok(()), |bias| cuda::activate((out, out_l), Some(bias), None))
    }
}
