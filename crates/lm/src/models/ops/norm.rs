//! Normalisation of rows.

use super::elements::{elements, gradient_of, is_tuned, wide, with_slice};
use super::form::Form;
use super::weight::TensorSource;
use crate::models::arch::NormKind;
use crate::models::error::ModelError;
use candle_core::{CpuStorage, CustomOp1, D, DType, Layout, Result, Shape, Tensor};
use kernels::norm::{layer_norm, norm_gradient};
use kernels::rms_norm::rms_norm;

/// A norm over the last dimension: a layer norm with its bias, or an RMS norm, which has none.
#[derive(Clone)]
pub struct Norm {
    /// `[width]`
    pub weight: Tensor,
    /// `[width]`
    pub bias: Option<Tensor>,
    pub kind: NormKind,
    pub eps: f64,
}

impl Norm {
    /// A norm of rows of `width` elements with the tensors `{name}.weight` and, if the kind has one, `{name}.bias`.
    pub fn load(
        name: &str,
        width: usize,
        kind: NormKind,
        eps: f64,
        source: TensorSource<'_>,
    ) -> std::result::Result<Self, ModelError> {
        let weight = source.tensor(&format!("{name}.weight"), &[width])?;
        let bias = match kind {
            NormKind::Layer => Some(source.tensor(&format!("{name}.bias"), &[width])?),
            NormKind::Rms => None,
        };
        Ok(Self { weight, bias, kind, eps })
    }

    /// x `[.., width]`, normalised row by row; in the form of a GPU, x may be in f32 as well as in the form's type.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused(_) => x.apply_op1_no_bwd(&Normalise { norm: self.clone(), out: DType::F32 }),
            Form::Gpu(dtype) => x.apply_op1_no_bwd(&Normalise { norm: self.clone(), out: dtype }),
            Form::Plain if is_tuned(x, &[Some(&self.weight), self.bias.as_ref()]) => {
                x.contiguous()?.apply_op1(Normalise { norm: self.clone(), out: DType::F32 })
            }
            Form::Plain => self.plain(x),
        }
    }

    fn plain(&self, x: &Tensor) -> Result<Tensor> {
        let wide_x = wide(x)?;
        let centred = match self.kind {
            NormKind::Layer => wide_x.broadcast_sub(&wide_x.mean_keepdim(D::Minus1)?)?,
            NormKind::Rms => wide_x,
        };
        let mean_square = centred.sqr()?.mean_keepdim(D::Minus1)?;
        let unit = centred.broadcast_div(&(mean_square + self.eps)?.sqrt()?)?;
        let scaled = unit.broadcast_mul(&wide(&self.weight)?)?;
        let shifted = match &self.bias {
            Some(bias) => scaled.broadcast_add(&wide(bias)?)?,
            None => scaled,
        };
        shifted.to_dtype(x.dtype())
    }
}

struct Normalise {
    norm: Norm,
    /// The type of the result.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "results on the CPU are in f32"))]
    out: DType,
}

impl CustomOp1 for Normalise {
    fn name(&self) -> &'static str {
        "normalise"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let Norm { weight, bias, eps, .. } = &self.norm;
        let (x, mut out, eps) = (elements(x, xl)?, vec![0f32; xl.shape().elem_count()], *eps as f32);
        with_slice(weight, |weight| match bias {
            Some(bias) => with_slice(bias, |bias| {
                layer_norm(&mut out, x, weight, bias, eps);
                Ok(())
            }),
            None => {
                rms_norm(&mut out, x, weight, 1, eps);
                Ok(())
            }
        })?;
        Ok((CpuStorage::F32(out), xl.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, xl: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        let Norm { weight, bias, kind, eps } = &self.norm;
        let out = crate::models::cuda::normalise((x, xl), weight, bias.as_ref(), *kind, *eps, self.out)?;
        Ok((out, xl.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (centred, eps) = (self.norm.kind == NormKind::Layer, self.norm.eps as f32);
        with_slice(&self.norm.weight, |weight| {
            gradient_of(x, gradient, |out, x, gradient| norm_gradient(out, x, gradient, weight, eps, centred))
        })
    }
}
