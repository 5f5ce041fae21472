//! The nonlinearity between the two products of an MLP.

use super::math::{erf, tanh};
use super::sigmoid;
use super::simd::vectorised;
use crate::models::arch::Activation;
use rayon::prelude::*;

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

pub(super) fn apply_to(activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::Gelu => to_each(values, gelu),
        Activation::GeluTanh => to_each(values, gelu_tanh),
        Activation::Relu => to_each(values, relu),
        Activation::Silu => to_each(values, sigmoid::silu),
    }
}

#[inline(always)]
fn to_each(values: &mut [f32], function: impl Fn(f32) -> f32) {
    vectorised!(for v in values {
        *v = function(*v);
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
        values,
        #[inline(always)]
        move |x| cap * tanh(x * inverse),
    );
}
