//! One layer: its tensors and the order of its steps. The steps themselves are in [`super::fused`], [`super::plain`]
//! and the kernels of a GPU.

use super::arch::{Generation, MambaArch};
use super::plan::MixerPlan;
use super::steps::{Conv, RmsNorm};
use crate::models::cuda::{Columns, Scan, ScanColumns};
use crate::models::error::ModelError;
use crate::models::ops::{Form, Linear, TensorSource};
use candle_core::{Result, Tensor};

pub struct MambaLayer {
    norm: RmsNorm,
    in_proj: Linear,
    conv: Conv,
    selection: MambaSelection,
    scan: Scan,
    out_proj: Linear,
}

/// Where time steps, b and c come from.
enum MambaSelection {
    Mamba { x_proj: Linear, time_proj: Linear },
    Mamba2 { gated_norm: RmsNorm },
}

impl MambaLayer {
    pub fn new(
        arch: &MambaArch,
        index: usize,
        form: Form,
        source: TensorSource<'_>,
    ) -> std::result::Result<Self, ModelError> {
        let name = |part: &str| format!("layers.{index}.{part}");
        let (hidden, inner, bias) = (arch.hidden_size, arch.intermediate_size, arch.projection_bias);
        let selection = match arch.generation {
            Generation::Mamba { time_step_rank } => {
                let x_width = time_step_rank + 2 * arch.state_size;
                let x_proj = Linear::load(&name("x_proj"), [x_width, inner], false, form, source)?;
                MambaSelection::Mamba {
                    x_proj,
                    time_proj: Linear::load(&name("time_proj"), [inner, time_step_rank], false, form, source)?,
                }
            }
            Generation::Mamba2 { groups, .. } => MambaSelection::Mamba2 {
                gated_norm: RmsNorm::new(&name("gated_norm"), inner, groups, arch.norm_eps, source)?,
            },
        };
        Ok(Self {
            norm: RmsNorm::new(&name("norm"), hidden, 1, arch.norm_eps, source)?,
            in_proj: Linear::load(&name("in_proj"), [arch.in_width(), hidden], bias, form, source)?,
            conv: conv(&name("conv"), arch, source)?,
            selection,
            scan: scan(&name, arch, source)?,
            out_proj: Linear::load(&name("out_proj"), [hidden, inner], bias, form, source)?,
        })
    }

    /// `x + mixer(norm(x))`, `[tokens, hidden]`.
    pub fn forward(&self, x: Tensor, arch: &MambaArch, plan: &MixerPlan) -> Result<Tensor> {
        let form = plan.form();
        let projected = self.in_proj.forward(&self.norm.forward(&x, form)?, form)?;
        let from_projected = |first| Columns { tensor: &projected, first };
        let inner = arch.intermediate_size;
        let mixed = match &self.selection {
            MambaSelection::Mamba { x_proj, time_proj } => {
                let convolved = plan.conv(from_projected(0), &self.conv)?;
                let selected = x_proj.forward(&convolved, form)?;
                let [_, rank] = time_proj.weight.dims()?;
                let time_steps = time_proj.forward(&selected.narrow(1, 0, rank)?.contiguous()?, form)?;
                let columns = ScanColumns {
                    x: Columns { tensor: &convolved, first: 0 },
                    gate: from_projected(inner),
                    time_steps: Columns { tensor: &time_steps, first: 0 },
                    b: Columns { tensor: &selected, first: rank },
                    c: Columns { tensor: &selected, first: rank + arch.state_size },
                };
                plan.scan(&columns, &self.scan)?
            }
            MambaSelection::Mamba2 { gated_norm } => {
                let convolved = plan.conv(from_projected(inner), &self.conv)?;
                let from_convolved = |first| Columns { tensor: &convolved, first };
                let columns = ScanColumns {
                    x: from_convolved(0),
                    gate: from_projected(0),
                    time_steps: from_projected(inner + arch.conv_channels()),
                    b: from_convolved(inner),
                    c: from_convolved(inner + self.scan.shape.mixing_width()),
                };
                gated_norm.forward(&plan.scan(&columns, &self.scan)?, form)?
            }
        };
        self.out_proj.add_to(x, &mixed, form)
    }
}

fn conv(name: &str, arch: &MambaArch, source: TensorSource<'_>) -> std::result::Result<Conv, ModelError> {
    let channels = arch.conv_channels();
    let weight = source.tensor(&format!("{name}.weight"), &[channels, 1, arch.conv_kernel])?;
    let taps = weight.squeeze(1)?.t()?.contiguous()?;
    let bias = if arch.conv_bias {
        source.tensor(&format!("{name}.bias"), &[channels])?
    } else {
        taps.get(0)?.zeros_like()?
    };
    Ok(Conv { taps, bias })
}

fn scan(
    name: &dyn Fn(&str) -> String,
    arch: &MambaArch,
    source: TensorSource<'_>,
) -> std::result::Result<Scan, ModelError> {
    let shape = arch.scan_shape();
    let steps = [shape.time_steps()];
    let a_log = match arch.generation {
        Generation::Mamba { .. } => source.tensor(&name("A_log"), &[steps[0], shape.states])?.t()?.contiguous()?,
        Generation::Mamba2 { .. } => source.tensor(&name("A_log"), &steps)?,
    };
    // A bias of the projection in Mamba, a separate parameter in Mamba-2.
    let time_bias = match arch.generation {
        Generation::Mamba { .. } => "time_proj.bias",
        Generation::Mamba2 { .. } => "dt_bias",
    };
    Ok(Scan {
        shape,
        a: a_log.exp()?.neg()?,
        d: source.tensor(&name("D"), &steps)?,
        time_bias: source.tensor(&name(time_bias), &steps)?,
        time_limit: arch.time_step_limit(),
    })
}
