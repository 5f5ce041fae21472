//! Normalisation of rows.

use super::elements::{elements, wide, with_slice};
use super::form::Form;
use super::trained::{FrozenNorm, is_tuned};
use crate::models::arch::NormKind;
use candle_core::{CpuStorage, CustomOp2, D, DType, Layout, Result, Shape, Tensor};
use kernels::norm::layer_norm;
use kernels::rms_norm::rms_norm;

/// A norm over the last dimension: a layer norm with its bias, or an RMS norm, which has none.
pub struct Norm {
    /// `[width]`
    pub weight: Tensor,
    /// `[width]`
    pub bias: Option<Tensor>,
    pub kind: NormKind,
    pub eps: f64,
}

impl Norm {
    /// x `[.., width]`, normalised row by row; in the form of a GPU, x may be in f32 as well as in the form's type.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused(_) => x.apply_op2_no_bwd(&self.weight, &Normalise { norm: self, out: DType::F32 }),
            Form::Gpu(dtype) => x.apply_op2_no_bwd(&self.weight, &Normalise { norm: self, out: dtype }),
            Form::Plain => self.plain(x),
        }
    }

    fn plain(&self, x: &Tensor) -> Result<Tensor> {
        if is_tuned(x, &[Some(&self.weight), self.bias.as_ref()]) {
            let (weight, bias) = (self.weight.clone(), self.bias.clone());
            return x.contiguous()?.apply_op1(FrozenNorm { weight, bias, kind: self.kind, eps: self.eps as f32 });
        }
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

struct Normalise<'a> {
    norm: &'a Norm,
    /// The type of the result.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "results on the CPU are in f32"))]
    out: DType,
}

impl CustomOp2 for Normalise<'_> {
    fn name(&self) -> &'static str {
        "normalise"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout, w: &CpuStorage, wl: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, weight) = (elements(x, xl)?, elements(w, wl)?);
        let eps = self.norm.eps as f32;
        let mut out = vec![0f32; x.len()];
        match &self.norm.bias {
            Some(bias) => with_slice(bias, |bias| {
                layer_norm(&mut out, x, weight, bias, eps);
                Ok(())
            })?,
            None => rms_norm(&mut out, x, weight, 1, eps),
        }
        Ok((CpuStorage::F32(out), xl.shape().clone()))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        xl: &Layout,
        w: &candle_core::CudaStorage,
        wl: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        let Norm { bias, kind, eps, .. } = self.norm;
        let out = crate::models::cuda::normalise((x, xl), (w, wl), bias.as_ref(), *kind, *eps, self.out)?;
        Ok((out, xl.shape().clone()))
    }
}
