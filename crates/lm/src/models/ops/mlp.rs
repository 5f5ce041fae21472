//! The activation between the two products of an MLP.

use super::elements::{elements, elements_mut, gradient_of, is_tuned, wide};
use super::form::Form;
use crate::models::arch::Activation;
use candle_core::{CpuStorage, CustomOp1, D, InplaceOp1, Layout, Result, Shape, Tensor};
use kernels::activation;
use kernels::gradients::activation as activation_gradient;

/// Applies an activation; all but the plain form overwrite `x`.
pub fn activate(activation: Activation, x: Tensor, form: Form) -> Result<Tensor> {
    match form {
        Form::Fused(_) | Form::Gpu(_) => x.inplace_op1(&Activate(activation)).map(|()| x),
        Form::Plain if is_tuned(&x, &[]) => x.contiguous()?.apply_op1(Activate(activation)),
        Form::Plain => plain(activation, &wide(&x)?)?.to_dtype(x.dtype()),
    }
}

/// Maps x `[tokens, 2 inner]` to `activation(x[.., ..inner]) * x[.., inner..]`, `[tokens, inner]`.
pub fn gate(activation: Activation, x: &Tensor, form: Form) -> Result<Tensor> {
    match form {
        Form::Fused(_) | Form::Gpu(_) => x.apply_op1_no_bwd(&Gate(activation)),
        Form::Plain if is_tuned(x, &[]) => x.contiguous()?.apply_op1(Gate(activation)),
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

/// An activation of every element, in place or with a gradient.
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

impl CustomOp1 for Activate {
    fn name(&self) -> &'static str {
        "activation-trained"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let mut out = elements(x, xl)?.to_vec();
        activation::apply(self.0, &mut out);
        Ok((CpuStorage::F32(out), xl.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        gradient_of(x, gradient, |out, x, gradient| {
            out.copy_from_slice(gradient);
            activation_gradient::multiply_by_derivative(self.0, out, x);
        })
    }
}

/// The activated first half of every row times the second.
struct Gate(Activation);

impl CustomOp1 for Gate {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(&self, x: &CpuStorage, xl: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, width) = xl.shape().dims2()?;
        let mut out = vec![0f32; tokens * (width / 2)];
        activation::gate(self.0, &mut out, elements(x, xl)?, width / 2);
        Ok((CpuStorage::F32(out), Shape::from((tokens, width / 2))))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(&self, x: &candle_core::CudaStorage, xl: &Layout) -> Result<(candle_core::CudaStorage, Shape)> {
        let (tokens, width) = xl.shape().dims2()?;
        Ok((crate::models::cuda::gate((x, xl), self.0)?, Shape::from((tokens, width / 2))))
    }

    fn bwd(&self, x: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let inner = result.dim(1)?;
        gradient_of(x, gradient, |out, x, gradient| activation_gradient::gate(self.0, out, x, gradient, inner))
    }
}
