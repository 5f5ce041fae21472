//! The nonlinearity between the two products of an MLP.

use super::math::{erf, tanh};
use super::sigmoid;
use crate::models::arch::Activation;
use multiversion::multiversion;
use rayon::prelude::*;

/// Elements a thread takes at once: large enough to pay for the hand-over, small enough to share a batch out.
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

fn apply_to(activation: Activation, values: &mut [f32]) {
    match activation {
        Activation::Gelu => gelu(values),
        Activation::GeluTanh => gelu_tanh(values),
        Activation::Relu => relu(values),
        Activation::Silu => silu(values),
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gelu(values: &mut [f32]) {
    for v in values {
        *v = *v * 0.5 * (1.0 + erf(*v * std::f32::consts::FRAC_1_SQRT_2));
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn gelu_tanh(values: &mut [f32]) {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    for v in values {
        let x = *v;
        *v = 0.5 * x * (1.0 + tanh(SQRT_2_OVER_PI * (x + 0.044_715 * x * x * x)));
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn silu(values: &mut [f32]) {
    for v in values {
        *v = sigmoid::silu(*v);
    }
}

/// `cap tanh(scale x / cap)` of every element, on this thread.
#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
pub fn soft_cap(values: &mut [f32], scale: f32, cap: f32) {
    let inverse = scale / cap;
    for v in values {
        *v = cap * tanh(*v * inverse);
    }
}

fn relu(values: &mut [f32]) {
    for v in values {
        // As a comparison, so that a NaN stays one.
        *v = if *v < 0.0 { 0.0 } else { *v };
    }
}
