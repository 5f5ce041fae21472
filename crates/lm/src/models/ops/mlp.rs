//! The activation between the two products of an MLP.

use super::elements::{elements_mut, wide};
use super::form::Form;
use super::trained::{TrainedActivation, TrainedGate, is_tuned};
use crate::models::arch::Activation;
use candle_core::{CpuStorage, D, InplaceOp1, Layout, Result, Tensor};
use kernels::activation;

/// Applies an activation; all but the plain form overwrite `x`.
pub fn activate(activation: Activation, x: Tensor, form: Form) -> Result<Tensor> {
    match form {
        Form::Fused(_) | Form::Gpu(_) => x.inplace_op1(&Activate(activation)).map(|()| x),
        Form::Plain if is_tuned(&x, &[]) => x.contiguous()?.apply_op1(TrainedActivation(activation)),
        Form::Plain => plain(activation, &wide(&x)?)?.to_dtype(x.dtype()),
    }
}

/// Maps x `[tokens, 2 inner]` to `activation(x[.., ..inner]) * x[.., inner..]`, `[tokens, inner]`.
pub fn gate(activation: Activation, x: &Tensor, form: Form) -> Result<Tensor> {
    match form {
        Form::Fused(_) | Form::Gpu(_) => x.apply_op1_no_bwd(&TrainedGate(activation)),
        Form::Plain if is_tuned(x, &[]) => x.contiguous()?.apply_op1(TrainedGate(activation)),
        Form::Plain => {
            let (inner, wide_x) = (x.dim(D::Minus1)? / 2, wide(x)?);
            let gate = plain(activation, &wide_x.narrow(D::Minus1, 0, inner)?.contiguous()?)?;
            (gate * wide_x.narrow(D::Minus1, inner, inner)?)?.to_dtype(x.dtype())
        }
    }
}

fn plain(activation: Activation, x: &Tensor) -> Result<Tensor> {
    match activation {
        Activation::Gelu => x.gelu_erf(),
        Activation::GeluTanh => x.gelu(),
        Activation::Relu => x.relu(),
        Activation::Silu => x.silu(),
    }
}

/// An activation in place.
struct Activate(Activation);

impl InplaceOp1 for Activate {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        activation::apply(self.0, elements_mut(storage, layout)?);
        Ok(())
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, storage: &mut candle_core::CudaStorage, layout: &Layout) -> Result<()> {
        crate::models::cuda::activate((storage, layout), None, Some(self.0))
    }
}
