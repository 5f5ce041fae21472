//! The nonlinearity between the two products of an MLP.

use super::math::{erf, tanh};
use super::sigmoid;
use super::simd::vectorised;
use rayon::prelude::*;

/// The nonlinearity of the MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x times the normal distribution function of x, computed with erf.
    Gelu,
    /// The tanh approximation of it (Hendrycks and Gimpel 2016), which GPT-NeoX-20B calls `gelu_fast`.
    GeluTanh,
    Relu,
    /// x times the logistic function of x.
    Silu,
}

/// Elements per task: enough to pay for the hand-over, few enough to distribute a batch.
const CHUNK: usize = 16 * 1024;

/// Applies the activation to every element.
pub fn apply(activation: Activation, values: &mut [f32]) {
    values.par_chunks_mut(CHUNK).for_each(|chunk| apply_to(activation, chunk));
}

/// `out` `[rows, inner]` from the rows of `x` `[rows, 2 inner]`: the activated first half times the second.
pub fn gate(activation: Activation, out: &mut [f32], x: &[f32], inner: usize) {
    let rows = (CHUNK / inner).max(1);
    out.par_chunks_mut(rows * inner).zip(x.par_chunks(rows * 2 * inner)).for_each(|(out, x)| {
        let halves = || x.chunks_exact(2 * inner).map(|row| row.split_at(inner));
        for (out, (gate, _)) in out.chunks_exact_mut(inner).zip(halves()) {
            out.copy_from_slice(gate);
        }
        apply_to(activation, out);
        for (out, (_, factor)) in out.chunks_exact_mut(inner).zip(halves()) {
            out.iter_mut().zip(factor).for_each(|(o, f)| *o *= f);
        }
    });
}

/// Applies the activation to rows of columns that are `stride` apart, on this thread.
///
/// # Safety
/// The block is initialised, and no other thread accesses it.
pub(super) unsafe fn apply_to_block(
    activation: Activation,
    first: *mut f32,
    stride: usize,
    [rows, columns]: [usize; 2],
) {
    // SAFETY: guaranteed by the caller.
    let row = |row| unsafe { std::slice::from_raw_parts_mut(first.add(row * stride), columns) };
    apply_to_rows(activation, (0..rows).map(row));
}

pub(super) fn apply_to(activation: Activation, values: &mut [f32]) {
    apply_to_rows(activation, std::iter::once(values));
}

fn apply_to_rows<'a>(activation: Activation, rows: impl Iterator<Item = &'a mut [f32]>) {
    match activation {
        Activation::Gelu => to_each(rows, gelu),
        Activation::GeluTanh => to_each(rows, gelu_tanh),
        Activation::Relu => to_each(rows, relu),
        Activation::Silu => to_each(rows, sigmoid::silu),
    }
}

#[inline(always)]
fn to_each<'a>(rows: impl Iterator<Item = &'a mut [f32]>, function: impl Fn(f32) -> f32) {
    vectorised!(for row in rows {
        for v in row {
            *v = function(*v);
        }
    });
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    x * 0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    0.5 * x * (1.0 + tanh(SQRT_2_OVER_PI * (x + 0.044_715 * x * x * x)))
}

#[inline(always)]
fn relu(x: f32) -> f32 {
    // Written as a comparison, so that NaN stays NaN.
    if x < 0.0 { 0.0 } else { x }
}

/// Applies `cap tanh(scale x / cap)` to every element, on this thread.
pub fn soft_cap(values: &mut [f32], scale: f32, cap: f32) {
    let inverse = scale / cap;
    to_each(
        std::iter::once(values),
        #[inline(always)]
        move |x| cap * tanh(x * inverse),
    );
}
