//! Projections.

use super::{Form, elements, elements_mut, with_slice};
use crate::models::kernels::gemm as matrix;
use candle_core::{CpuStorage, CustomOp2, InplaceOp3, Layout, Result, Shape, Tensor, bail};
use gemm::Parallelism;

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
