//! The steps of a mixer in candle's differentiable operations, on any device. Around the convolution and the scan,
//! sequences are padded at the end to the longest one; since both are causal, the padding affects nothing.

use super::steps::{Conv, RmsNorm};
use crate::models::batch::PackedBatch;
use crate::models::cuda::upload;
use crate::models::cuda::{Columns, Scan, ScanColumns};
use candle_core::{D, Device, Result, Tensor};
use kernels::scan::TimeStep;
use kernels::sigmoid::LN_1P_TERMS;

/// Converts between rows of the packed batch and `[sequences, longest]`.
pub struct Padding {
    sequences: usize,
    longest: usize,
    /// The row of the packed batch for each place; padding refers to row 0.
    places: Tensor,
    /// The place of each row of the packed batch.
    rows: Tensor,
}

impl Padding {
    pub fn new(batch: &PackedBatch, device: &Device) -> Result<Self> {
        let (sequences, longest) = (batch.sequences.len(), batch.longest());
        let mut places = vec![0u32; sequences * longest];
        let mut rows = Vec::with_capacity(batch.ids.len());
        for (i, sequence) in batch.sequences.iter().enumerate() {
            for (t, row) in sequence.clone().enumerate() {
                places[i * longest + t] = row as u32;
                rows.push((i * longest + t) as u32);
            }
        }
        let (places, rows) = (upload(&places, device)?, upload(&rows, device)?);
        Ok(Self { sequences, longest, places, rows })
    }

    /// Columns of a packed tensor as `[sequences, longest, width]`.
    fn pad(&self, columns: Columns, width: usize) -> Result<Tensor> {
        let packed = columns.tensor.narrow(1, columns.first, width)?.contiguous()?;
        packed.index_select(&self.places, 0)?.reshape((self.sequences, self.longest, width))
    }

    /// `[sequences, longest, ..]` as `[tokens, width]`.
    fn pack(&self, padded: &Tensor) -> Result<Tensor> {
        padded.reshape((self.sequences * self.longest, ()))?.index_select(&self.rows, 0)
    }
}

pub fn rms_norm(x: &Tensor, norm: &RmsNorm) -> Result<Tensor> {
    let groups = x.reshape((x.dim(0)?, norm.groups, ()))?;
    let mean = groups.sqr()?.mean_keepdim(D::Minus1)?;
    let unit = groups.broadcast_div(&(mean + norm.eps)?.sqrt()?)?;
    unit.reshape(x.shape())?.broadcast_mul(&norm.weight)
}

/// The convolution with its activation, `[tokens, channels]`.
pub fn conv(x: Columns, conv: &Conv, padding: &Padding) -> Result<Tensor> {
    let (kernel, channels) = conv.taps.dims2()?;
    let x = padding.pad(x, channels)?.pad_with_zeros(1, kernel - 1, 0)?;
    let tap = |k: usize| x.narrow(1, k, padding.longest)?.broadcast_mul(&conv.taps.get(k)?);
    let mut sum = tap(0)?;
    for k in 1..kernel {
        sum = (sum + tap(k)?)?;
    }
    padding.pack(&sum)?.broadcast_add(&conv.bias)?.silu()
}

/// The gated result of the scan, `[tokens, channels]`. States are `[sequences, heads, head_dim, states]`.
pub fn scan(columns: &ScanColumns, scan: &Scan, padding: &Padding) -> Result<Tensor> {
    let shape = scan.shape;
    let (heads, states, channels) = (shape.heads, shape.states, shape.channels());
    // Heads and channels per head that have a time step; the other axis broadcasts.
    let (step_shape, a) = match shape.time_step {
        TimeStep::PerChannel => ((1, channels), scan.a.t()?),
        TimeStep::PerHead => ((heads, 1), scan.a.reshape((heads, 1, 1))?),
    };
    let dt = columns.time_steps.tensor.narrow(1, columns.time_steps.first, shape.time_steps())?;
    let dt = softplus(&dt.broadcast_add(&scan.time_bias)?)?.clamp(scan.time_limit.0, scan.time_limit.1)?;
    let dt = padding.pad(Columns { tensor: &dt, first: 0 }, shape.time_steps())?;
    let x = padding.pad(columns.x, channels)?;
    let (b, c) = (mixing(columns.b, scan, padding)?, mixing(columns.c, scan, padding)?);

    let mut outputs = Vec::with_capacity(padding.longest);
    let mut state = Tensor::zeros((padding.sequences, heads, shape.head_dim, states), x.dtype(), x.device())?;
    for t in 0..padding.longest {
        let step = |padded: &Tensor| padded.narrow(1, t, 1)?.squeeze(1);
        let dt = step(&dt)?.reshape((padding.sequences, step_shape.0, step_shape.1, 1))?;
        let x = step(&x)?.reshape((padding.sequences, heads, shape.head_dim, 1))?;
        let decay = dt.broadcast_mul(&a)?.exp()?;
        let inflow = x.broadcast_mul(&dt)?.broadcast_mul(&step(&b)?.unsqueeze(2)?)?;
        state = (state.broadcast_mul(&decay)? + inflow)?;
        outputs.push(state.broadcast_mul(&step(&c)?.unsqueeze(2)?)?.sum(D::Minus1)?);
    }
    let y = padding.pack(&Tensor::stack(&outputs, 1)?)?;
    let packed = |columns: Columns| columns.tensor.narrow(1, columns.first, channels);
    let by_head = packed(columns.x)?.reshape(((), heads, shape.head_dim))?;
    let skip = by_head.broadcast_mul(&scan.d.reshape(step_shape)?)?.reshape(y.shape())?;
    (y + skip)? * packed(columns.gate)?.silu()?
}

/// `b` or `c` as `[sequences, longest, heads, states]`, repeated for the heads that share it.
fn mixing(columns: Columns, scan: &Scan, padding: &Padding) -> Result<Tensor> {
    let shape = scan.shape;
    let (n, longest, shared) = (padding.sequences, padding.longest, shape.heads / shape.groups);
    let groups = padding.pad(columns, shape.mixing_width())?.reshape((n, longest, shape.groups, 1, shape.states))?;
    let heads = groups.expand((n, longest, shape.groups, shared, shape.states))?;
    heads.reshape((n, longest, shape.heads, shape.states))
}

/// As [`kernels::sigmoid::softplus`]: `ln(1 + e^x)` itself would lose small values to rounding.
fn softplus(x: &Tensor) -> Result<Tensor> {
    let u = x.abs()?.neg()?.exp()?;
    let s = (&u / (&u + 2.0)?)?;
    let square = s.sqr()?;
    let mut series = square.zeros_like()?;
    for term in (0..LN_1P_TERMS).rev() {
        series = ((series * &square)? + 1.0 / (2 * term + 1) as f64)?;
    }
    x.relu()? + (s * series)? * 2.0
}
