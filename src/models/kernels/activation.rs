//! The nonlinearity between the two products of an MLP, in place.

use super::math::{erf, tanh};
use crate::models::arch::Activation;
use multiversion::multiversion;
use rayon::prelude::*;

/// Elements a thread takes at once: large enough to pay for the hand-over, small enough to share a batch out.
const CHUNK: usize = 16 * 1024;

/// Applies the activation to every element.
pub fn apply(activation: Activation, values: &mut [f32]) {
    values.par_chunks_mut(CHUNK).for_each(|chunk| match activation {
        Activation::Gelu => gelu(chunk),
        Activation::GeluTanh => gelu_tanh(chunk),
        Activation::Relu => relu(chunk),
    });
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

fn relu(values: &mut [f32]) {
    for v in values {
        // As a comparison, so that a NaN stays one.
        *v = if *v < 0.0 { 0.0 } else { *v };
    }
}
