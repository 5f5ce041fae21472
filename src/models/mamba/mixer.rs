//! One layer: its tensors and the order of its steps. The steps themselves are in [`super::fused`], [`super::plain`] and
//! [`super::gpu`].

use super::arch::{Generation, MambaArch};
use super::{fused, gpu, plain};
use crate::models::ModelError;
use crate::models::batch::PackedBatch;
use crate::models::cuda::Scans;
use crate::models::decoder::TensorSource;
use crate::models::kernels::scan::ScanShape;
use crate::models::layer::linear;
use crate::models::ops::{Form, Linear, Multiply};
use candle_core::{Result, Tensor};

/// What every layer of one forward pass shares.
pub enum Plan<'a> {
    Fused {
        batch: &'a PackedBatch,
        positions: Vec<usize>,
        multiply: Multiply,
    },
    Plain(plain::Padding),
    /// The plain form, but for the convolution and the scan, for which there are kernels.
    Gpu(gpu::Kernels<'a>),
}

/// RMS normalisation in groups of columns, with weight `[width]`.
pub struct RmsNorm {
    pub weight: Tensor,
    pub groups: usize,
    pub eps: f64,
}

/// The convolution: taps `[kernel, channels]`, the last one for the token itself, and bias `[channels]`.
pub struct Conv {
    pub taps: Tensor,
    pub bias: Tensor,
}

/// What the scan has learnt, as [`crate::models::kernels::scan::ScanWeights`] describes it.
pub struct Scan {
    pub shape: ScanShape,
    pub a: Tensor,
    pub d: Tensor,
    pub time_bias: Tensor,
    pub time_limit: (f64, f64),
}

/// Columns of a tensor `[tokens, width]`, from `first` on; how many is said by who reads them.
#[derive(Clone, Copy)]
pub struct Columns<'a> {
    pub tensor: &'a Tensor,
    pub first: usize,
}

/// What the scan reads, as [`crate::models::kernels::scan::ScanInput`] describes it.
pub struct ScanColumns<'a> {
    pub x: Columns<'a>,
    pub gate: Columns<'a>,
    pub time_steps: Columns<'a>,
    pub b: Columns<'a>,
    pub c: Columns<'a>,
}

pub struct Layer {
    norm: RmsNorm,
    in_proj: Linear,
    conv: Conv,
    selection: Selection,
    scan: Scan,
    out_proj: Linear,
}

/// Where time steps, b and c come from.
enum Selection {
    Mamba { x_proj: Linear, time_proj: Linear },
    Mamba2 { gated_norm: RmsNorm },
}

impl<'a> Plan<'a> {
    /// For a batch whose first hidden states are `x`, with the kernels of a GPU where there are some.
    pub fn new(form: Form, batch: &'a PackedBatch, scans: Option<&'a Scans>, x: &Tensor) -> Result<Self> {
        Ok(match (form, scans) {
            (Form::Fused(multiply), _) => Self::Fused { batch, positions: batch.positions(), multiply },
            // Kernels know no gradients.
            (Form::Plain, Some(scans)) if !x.track_op() => Self::Gpu(gpu::Kernels::new(scans, batch, x.device())?),
            (Form::Plain, _) => Self::Plain(plain::Padding::new(batch, x.device())?),
        })
    }

    fn form(&self) -> Form {
        match self {
            Self::Fused { multiply, .. } => Form::Fused(*multiply),
            Self::Plain(_) | Self::Gpu(_) => Form::Plain,
        }
    }

    fn conv(&self, x: Columns, conv: &Conv) -> Result<Tensor> {
        match self {
            Self::Fused { positions, .. } => fused::conv(x, conv, positions),
            Self::Plain(padding) => plain::conv(x, conv, padding),
            Self::Gpu(kernels) => kernels.conv(x, conv),
        }
    }

    fn scan(&self, columns: &ScanColumns, scan: &Scan) -> Result<Tensor> {
        match self {
            Self::Fused { batch, .. } => fused::scan(columns, scan, &batch.sequences),
            Self::Plain(padding) => plain::scan(columns, scan, padding),
            Self::Gpu(kernels) => kernels.scan(columns, scan),
        }
    }
}

impl RmsNorm {
    pub fn new(
        name: &str,
        width: usize,
        groups: usize,
        eps: f64,
        source: TensorSource<'_>,
    ) -> std::result::Result<Self, ModelError> {
        Ok(Self { weight: source(&format!("{name}.weight"), &[width])?, groups, eps })
    }

    /// x `[tokens, width]`, normalised row by row and group by group.
    pub fn forward(&self, x: &Tensor, form: Form) -> Result<Tensor> {
        match form {
            Form::Fused(_) => fused::rms_norm(x, self),
            Form::Plain => plain::rms_norm(x, self),
        }
    }
}

impl Layer {
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
                let x_proj = linear(&name("x_proj"), [x_width, inner], false, form, source)?;
                Selection::Mamba {
                    x_proj,
                    time_proj: linear(&name("time_proj"), [inner, time_step_rank], false, form, source)?,
                }
            }
            Generation::Mamba2 { groups, .. } => Selection::Mamba2 {
                gated_norm: RmsNorm::new(&name("gated_norm"), inner, groups, arch.norm_eps, source)?,
            },
        };
        Ok(Self {
            norm: RmsNorm::new(&name("norm"), hidden, 1, arch.norm_eps, source)?,
            in_proj: linear(&name("in_proj"), [arch.in_width(), hidden], bias, form, source)?,
            conv: conv(&name("conv"), arch, source)?,
            selection,
            scan: scan(&name, arch, source)?,
            out_proj: linear(&name("out_proj"), [hidden, inner], bias, form, source)?,
        })
    }

    /// `x + mixer(norm(x))`, `[tokens, hidden]`.
    pub fn forward(&self, x: Tensor, arch: &MambaArch, plan: &Plan) -> Result<Tensor> {
        let form = plan.form();
        let projected = self.in_proj.forward(&self.norm.forward(&x, form)?, form)?;
        let from_projected = |first| Columns { tensor: &projected, first };
        let inner = arch.intermediate_size;
        let mixed = match &self.selection {
            Selection::Mamba { x_proj, time_proj } => {
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
            Selection::Mamba2 { gated_norm } => {
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
    let weight = source(&format!("{name}.weight"), &[channels, 1, arch.conv_kernel])?;
    let taps = weight.squeeze(1)?.t()?.contiguous()?;
    let bias =
        if arch.conv_bias { source(&format!("{name}.bias"), &[channels])? } else { taps.get(0)?.zeros_like()? };
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
        Generation::Mamba { .. } => source(&name("A_log"), &[steps[0], shape.states])?.t()?.contiguous()?,
        Generation::Mamba2 { .. } => source(&name("A_log"), &steps)?,
    };
    // A bias of the projection in Mamba, a parameter of its own in Mamba-2.
    let time_bias = match arch.generation {
        Generation::Mamba { .. } => "time_proj.bias",
        Generation::Mamba2 { .. } => "dt_bias",
    };
    Ok(Scan {
        shape,
        a: a_log.exp()?.neg()?,
        d: source(&name("D"), &steps)?,
        time_bias: source(&name(time_bias), &steps)?,
        time_limit: arch.time_step_limit(),
    })
}
