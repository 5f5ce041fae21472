//! The operations of the plain form on the CPU while something else than weights is tuned: kernels forward, and gradients of
//! their own. candle would compute gradients of the weights as well, and its element-wise operations run on one thread.

use super::elements::{elements, with_slice};
use crate::models::arch::{Activation, NormKind};
use crate::models::rotary::RotaryRows;
use candle_core::{CpuStorage, CustomOp1, DType, Device, Layout, Result, Shape, Tensor};
use gemm::Parallelism;
use kernels::activation as activations;
use kernels::attention::{self, AttentionShape, Visibility};
use kernels::gemm as matrix;
use kernels::gradients::activation as activation_gradient;
use kernels::gradients::attention::AttentionGradient;
use kernels::norm::{layer_norm, norm_gradient};
use kernels::rms_norm::rms_norm;
use std::ops::Range;
use std::sync::Arc;

/// Returns true if x has a gradient, and the weights have none, in a form that these operations have.
pub(super) fn is_tuned(x: &Tensor, weights: &[Option<&Tensor>]) -> bool {
    let is_f32 = |tensor: &Tensor| tensor.dtype() == DType::F32 && tensor.device().is_cpu();
    let is_frozen = |weight: &&Tensor| is_f32(weight) && !weight.track_op();
    x.track_op() && is_f32(x) && x.rank() == 2 && weights.iter().flatten().all(is_frozen)
}

/// Calls with the elements of x and of its result's gradient, and gives the gradient of x, which has `width` columns.
fn gradient_of(
    x: &Tensor,
    gradient: &Tensor,
    write: impl FnOnce(&mut [f32], &[f32], &[f32]) -> Result<()>,
) -> Result<Option<Tensor>> {
    let mut out = vec![0f32; x.elem_count()];
    let (x, gradient) = (x.contiguous()?, gradient.contiguous()?);
    with_slice(&x, |x| with_slice(&gradient, |gradient| write(&mut out, x, gradient)))?;
    Tensor::from_vec(out, x.shape(), &Device::Cpu).map(Some)
}

/// `x w^T` with w `[out, in]`.
pub(super) struct FrozenProduct {
    pub weight: Tensor,
}

impl CustomOp1 for FrozenProduct {
    fn name(&self) -> &'static str {
        "project-frozen"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let ((m, k), (n, _)) = (xl.shape().dims2()?, self.weight.dims2()?);
        let (x, mut out) = (elements(x, xl)?, vec![0f32; m * n]);
        with_slice(&self.weight, |w| {
            matrix::linear(&mut out, x, w, [m, n, k], false, Parallelism::Rayon(0));
            Ok(())
        })?;
        Ok((CpuStorage::F32(out), Shape::from((m, n))))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient.contiguous()?.matmul(&self.weight).map(Some)
    }
}

/// A norm of every row.
pub(super) struct FrozenNorm {
    pub weight: Tensor,
    pub bias: Option<Tensor>,
    pub kind: NormKind,
    pub eps: f32,
}

impl CustomOp1 for FrozenNorm {
    fn name(&self) -> &'static str {
        "normalise-frozen"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, mut out) = (elements(x, xl)?, vec![0f32; xl.shape().elem_count()]);
        with_slice(&self.weight, |weight| match &self.bias {
            Some(bias) => with_slice(bias, |bias| {
                layer_norm(&mut out, x, weight, bias, self.eps);
                Ok(())
            }),
            None => {
                rms_norm(&mut out, x, weight, 1, self.eps);
                Ok(())
            }
        })?;
        Ok((CpuStorage::F32(out), xl.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let centred = self.kind == NormKind::Layer;
        with_slice(&self.weight, |weight| {
            gradient_of(x, gradient, |out, x, gradient| {
                norm_gradient(out, x, gradient, weight, self.eps, centred);
                Ok(())
            })
        })
    }
}

/// An activation of every element.
pub(super) struct TrainedActivation(pub Activation);

impl CustomOp1 for TrainedActivation {
    fn name(&self) -> &'static str {
        "activation-trained"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let mut out = elements(x, xl)?.to_vec();
        activations::apply(self.0, &mut out);
        Ok((CpuStorage::F32(out), xl.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient_of(x, gradient, |out, x, gradient| {
            out.copy_from_slice(gradient);
            activation_gradient::multiply_by_derivative(self.0, out, x);
            Ok(())
        })
    }
}

/// The activated first half of every row times the second.
pub(super) struct TrainedGate(pub Activation);

impl CustomOp1 for TrainedGate {
    fn name(&self) -> &'static str {
        "gate-trained"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, width) = xl.shape().dims2()?;
        let mut out = vec![0f32; tokens * (width / 2)];
        activations::gate(self.0, &mut out, elements(x, xl)?, width / 2);
        Ok((CpuStorage::F32(out), Shape::from((tokens, width / 2))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, xl: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        let (tokens, width) = xl.shape().dims2()?;
        Ok((crate::models::cuda::gate((x, xl), self.0)?, Shape::from((tokens, width / 2))))
    }

    fn bwd(&self, x: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let inner = result.dim(1)?;
        gradient_of(x, gradient, |out, x, gradient| {
            activation_gradient::gate(self.0, out, x, gradient, inner);
            Ok(())
        })
    }
}

/// Causal attention, from qkv `[tokens, qkv_width]` to `[tokens, heads * head_dim]`.
pub(super) struct TrainedAttention {
    pub sequences: Vec<Range<usize>>,
    pub shape: AttentionShape,
    pub visibility: Visibility,
    pub rotary: Option<Arc<RotaryRows>>,
}

impl CustomOp1 for TrainedAttention {
    fn name(&self) -> &'static str {
        "causal-attention-trained"
    }

    fn cpu_fwd(&self, qkv: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, _) = layout.shape().dims2()?;
        let (width, rotary) = (self.shape.out_width(), self.rotary.as_ref().map(|rows| &rows.angles));
        let mut out = vec![0f32; tokens * width];
        attention::causal(&mut out, elements(qkv, layout)?, &self.sequences, self.shape, self.visibility, rotary);
        Ok((CpuStorage::F32(out), Shape::from((tokens, width))))
    }

    fn bwd(&self, qkv: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let (shape, visibility) = (self.shape, self.visibility);
        let rotary = self.rotary.as_ref().map(|rows| &rows.angles);
        gradient_of(qkv, gradient, |out, qkv, gradient| {
            AttentionGradient { qkv, gradient, shape, visibility, rotary }.write(out, &self.sequences);
            Ok(())
        })
    }
}
