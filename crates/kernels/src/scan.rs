//! The selective scan of Mamba (Gu and Dao 2023, algorithm 2) and of Mamba-2 (Dao and Gu 2024), one pass over time.
//!
//! Per channel and state n: `h = e^(dt a) h + dt x b[n]`, and `y = (sum_n c[n] h[n] + d x) silu(gate)`. One task
//! processes one sequence for one block of channels, a channel per vector lane, so that the states stay in the L1 cache
//! and nothing of the size `[tokens, channels, states]` is ever allocated. The sums over states have the same order
//! everywhere.

use super::gemm::MatrixView;
use super::math::exp_nonpositive;
use super::shared_mut::SharedMut;
use super::sigmoid::{silu, softplus};
use super::simd::vectorised;
use rayon::prelude::*;
use std::ops::Range;

/// Channels per block: two vectors of AVX-512.
const LANES: usize = 32;
type Lanes = [f32; LANES];

/// The shape of the scan of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScanShape {
    /// Channels are divided evenly into heads, and heads into groups.
    pub heads: usize,
    pub head_dim: usize,
    /// The heads of a group share `b` and `c`.
    pub groups: usize,
    pub states: usize,
    /// Time steps per channel or per head.
    pub time_step: TimeStep,
}

/// The granularity of time steps, with their biases, decay rates and skips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeStep {
    /// One per channel, with a rate for every state: Mamba.
    PerChannel,
    /// One per head, with a single rate: Mamba-2.
    PerHead,
}

impl ScanShape {
    /// Width of `x`, of the gate and of the result.
    pub fn channels(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of `b`, and of `c`.
    pub fn mixing_width(&self) -> usize {
        self.groups * self.states
    }

    /// Time steps per token.
    pub fn time_steps(&self) -> usize {
        match self.time_step {
            TimeStep::PerChannel => self.channels(),
            TimeStep::PerHead => self.heads,
        }
    }

    fn blocks_of_head(&self) -> usize {
        self.head_dim.div_ceil(LANES)
    }
}

/// The inputs that differ from token to token; row t of every view belongs to token t of the batch.
#[derive(Clone, Copy)]
pub struct ScanInput<'a> {
    /// `[tokens, channels]`
    pub x: MatrixView<'a>,
    /// `[tokens, channels]`
    pub gate: MatrixView<'a>,
    /// `[tokens, time_steps]`, before bias and softplus.
    pub time_steps: MatrixView<'a>,
    /// `[tokens, groups * states]`, how the input is added to the states.
    pub b: MatrixView<'a>,
    /// `[tokens, groups * states]`, how the states are read.
    pub c: MatrixView<'a>,
}

/// The learned parameters of the layer.
#[derive(Clone, Copy)]
pub struct ScanWeights<'a> {
    /// Rates of decay, at most 0: `[states, channels]`, or `[heads]` if time steps are per head.
    pub a: &'a [f32],
    /// The skip, `[time_steps]`.
    pub d: &'a [f32],
    /// `[time_steps]`
    pub time_bias: &'a [f32],
    /// Bounds on the time step after softplus.
    pub time_limit: (f32, f32),
}

/// Channels `column..column + width`, all of one head.
struct Block {
    head: usize,
    group: usize,
    column: usize,
    width: usize,
}

/// One sequence in one block of channels.
struct ScanTask<'a> {
    out: SharedMut,
    input: &'a ScanInput<'a>,
    weights: &'a ScanWeights<'a>,
    shape: ScanShape,
    rows: Range<usize>,
    block: Block,
}

/// Buffers that a task reuses from the previous one: `[states]` each, or a single rate if time steps are per head.
#[derive(Default)]
struct ScanScratch {
    states: Vec<Lanes>,
    rates: Vec<Lanes>,
}

/// `out` `[tokens, channels]`; `sequences` are the row ranges of the batch, each of which starts from an empty state.
///
/// # Panics
/// If slices are smaller than required by the ranges and the shape: an error of the caller, never of a request.
pub fn selective_scan(
    out: &mut [f32],
    input: &ScanInput,
    weights: &ScanWeights,
    sequences: &[Range<usize>],
    shape: ScanShape,
) {
    let tokens = sequences.last().map_or(0, |s| s.end);
    assert!(out.len() >= tokens * shape.channels() && shape.heads.is_multiple_of(shape.groups));
    // Tasks write disjoint rows only if the ranges are sorted and do not overlap.
    assert!(sequences.iter().all(|s| s.start <= s.end) && sequences.windows(2).all(|w| w[0].end <= w[1].start));
    let out = SharedMut(out.as_mut_ptr());
    let blocks = shape.heads * shape.blocks_of_head();
    (0..sequences.len() * blocks).into_par_iter().for_each_init(ScanScratch::default, |scratch, task| {
        let (rows, block) = (sequences[task / blocks].clone(), Block::new(task % blocks, &shape));
        let task = ScanTask { out, input, weights, shape, rows, block };
        match shape.time_step {
            TimeStep::PerChannel => vectorised!(scan::<false>(&task, scratch)),
            TimeStep::PerHead => vectorised!(scan::<true>(&task, scratch)),
        }
    });
}

impl Block {
    fn new(index: usize, shape: &ScanShape) -> Self {
        let (head, first) = (index / shape.blocks_of_head(), index % shape.blocks_of_head() * LANES);
        let group = head / (shape.heads / shape.groups);
        Self { head, group, column: head * shape.head_dim + first, width: LANES.min(shape.head_dim - first) }
    }
}

#[inline(always)]
fn scan<const PER_HEAD: bool>(task: &ScanTask, scratch: &mut ScanScratch) {
    let ScanTask { input, weights, shape, block, .. } = task;
    let channels = |row: &[f32]| lanes(&row[block.column..][..block.width]);
    let time_steps = |row: &[f32]| if PER_HEAD { [row[block.head]; LANES] } else { channels(row) };
    let mixing = block.group * shape.states;

    scratch.states.clear();
    scratch.states.resize(shape.states, [0.0; LANES]);
    scratch.rates.clear();
    scratch.rates.extend(weights.a.chunks_exact(shape.time_steps()).map(time_steps));
    let (d, bias) = (time_steps(weights.d), time_steps(weights.time_bias));

    for t in task.rows.clone() {
        let (x, gate) = (channels(row(&input.x, t)), channels(row(&input.gate, t)));
        let (b, c) = (&row(&input.b, t)[mixing..][..shape.states], &row(&input.c, t)[mixing..][..shape.states]);
        let mut dt = time_steps(row(&input.time_steps, t));
        let mut inflow = [0.0; LANES];
        for i in 0..LANES {
            dt[i] = clamped(softplus(dt[i] + bias[i]), weights.time_limit);
            inflow[i] = dt[i] * x[i];
        }
        let mut y = if PER_HEAD {
            let mut decay = [0.0; LANES];
            for i in 0..LANES {
                decay[i] = exp_nonpositive(dt[i] * scratch.rates[0][i]);
            }
            advance(&mut scratch.states, b, c, &inflow, |_, i| decay[i])
        } else {
            let rates = &scratch.rates[..b.len()];
            advance(&mut scratch.states, b, c, &inflow, |n, i| exp_nonpositive(dt[i] * rates[n][i]))
        };
        for i in 0..LANES {
            y[i] = (y[i] + d[i] * x[i]) * silu(gate[i]);
        }
        // SAFETY: a row of this sequence at the columns of this block, which are inside `out` (checked where the tasks
        // are created) and accessed by this task only.
        let out =
            unsafe { std::slice::from_raw_parts_mut(task.out.add(t * shape.channels() + block.column), block.width) };
        out.copy_from_slice(&y[..block.width]);
    }
}

/// Advances every state by one token and reads them: `sum_n c[n] h[n]`. `decay(n, i)` is the decay of state n in lane
/// i.
#[inline(always)]
fn advance(states: &mut [Lanes], b: &[f32], c: &[f32], inflow: &Lanes, decay: impl Fn(usize, usize) -> f32) -> Lanes {
    let mut y = [0.0; LANES];
    for (n, ((h, &b), &c)) in states.iter_mut().zip(b).zip(c).enumerate() {
        for i in 0..LANES {
            h[i] = h[i] * decay(n, i) + inflow[i] * b;
            y[i] += h[i] * c;
        }
    }
    y
}

#[inline(always)]
fn row<'a>(view: &MatrixView<'a>, t: usize) -> &'a [f32] {
    &view.data[t * view.row_stride..]
}

/// Up to `LANES` values; a block at the end of a head is padded with zeros, which do not affect the others.
#[inline(always)]
fn lanes(values: &[f32]) -> Lanes {
    values.first_chunk().copied().unwrap_or_else(|| {
        let mut lanes = [0.0; LANES];
        lanes[..values.len()].copy_from_slice(values);
        lanes
    })
}

/// The value clamped to the limits, by comparisons, so that NaN stays NaN.
#[inline(always)]
fn clamped(value: f32, (least, most): (f32, f32)) -> f32 {
    let value = if value < least { least } else { value };
    if value > most { most } else { value }
}
