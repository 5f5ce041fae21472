//! The activation between the two products of an MLP.

use super::elements::{elements, elements_mut, wide};
use super::form::Form;
use crate::models::arch::Activation;
use crate::models::kernels::activation;
use candle_core::{CpuStorage, CustomOp1, D, InplaceOp1, Layout, Result, Shape, Tensor};

/// Applies an activation; the fused form overwrites `x`.
pub fn activate(activation: Activation, x: Tensor, form: Form) -> Result<Tensor> {
    match form {
        Form::Fused(_) => x.inplace_op1(&activation).map(|()| x),
        Form::Plain => plain(activation, &wide(&x)?)?.to_dtype(x.dtype()),
    }
}

/// Maps x `[tokens, 2 inner]` to `activation(x[.., ..inner]) * x[.., inner..]`, `[tokens, inner]`.
pub fn gate(activation: Activation, x: &Tensor, form: Form) -> Result<Tensor> {
    match form {
        Form::Fused(_) => x.apply_op1_no_bwd(&GatedActivation(activation)),
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

impl InplaceOp1 for Activation {
    fn name(&self) -> &'static str {
        "activation"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        activation::apply(*self, elements_mut(storage, layout)?);
        Ok(())
    }
}

struct GatedActivation(Activation);

impl CustomOp1 for GatedActivation {
    fn name(&self) -> &'static str {
        "gate"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let (tokens, width) = layout.shape().dims2()?;
        let mut out = vec![0f32; tokens * (width / 2)];
        activation::gate(self.0, &mut out, elements(x, layout)?, width / 2);
        Ok((CpuStorage::F32(out), Shape::from((tokens, width / 2))))
    }
}
