//! The derivatives of activations.

use crate::activation;
use crate::activation::Activation;
use crate::math::{erf, exp_nonpositive, tanh};
use crate::sigmoid::sigmoid;
use crate::simd::vectorised;
use rayon::prelude::*;

/// Elements per task.
const CHUNK: usize = 16 * 1024;

/// Multiplies every element of `gradient` by the derivative of the activation at x.
pub fn multiply_by_derivative(activation: Activation, gradient: &mut [f32], x: &[f32]) {
    let chunks = gradient.par_chunks_mut(CHUNK).zip(x.par_chunks(CHUNK));
    chunks.for_each(|(gradient, x)| multiply(activation, gradient, x));
}

/// `out` `[rows, 2 inner]`, the gradient of a [gate](activation::gate) at x `[rows, 2 inner]`, from that of its result
/// `[rows, inner]`.
pub fn gate(activation: Activation, out: &mut [f32], x: &[f32], gradient: &[f32], inner: usize) {
    let rows = (CHUNK / inner).max(1);
    let chunks = out.par_chunks_mut(rows * 2 * inner).zip(x.par_chunks(rows * 2 * inner));
    chunks.zip(gradient.par_chunks(rows * inner)).for_each(|((out, x), gradient)| {
        let rows = out.chunks_exact_mut(2 * inner).zip(x.chunks_exact(2 * inner)).zip(gradient.chunks_exact(inner));
        for ((out, x), gradient) in rows {
            let (gate, factor) = x.split_at(inner);
            let (of_gate, of_factor) = out.split_at_mut(inner);
            of_factor.copy_from_slice(gate);
            activation::apply_to(activation, of_factor);
            of_factor.iter_mut().zip(gradient).for_each(|(o, g)| *o *= g);
            for ((o, g), f) in of_gate.iter_mut().zip(gradient).zip(factor) {
                *o = g * f;
            }
            multiply(activation, of_gate, gate);
        }
    });
}

fn multiply(activation: Activation, gradient: &mut [f32], x: &[f32]) {
    match activation {
        Activation::Gelu => each(gradient, x, gelu),
        Activation::GeluTanh => each(gradient, x, gelu_tanh),
        Activation::Relu => each(gradient, x, |x| if x > 0.0 { 1.0 } else { 0.0 }),
        Activation::Silu => each(gradient, x, silu),
    }
}

#[inline(always)]
fn each(gradient: &mut [f32], x: &[f32], derivative: impl Fn(f32) -> f32) {
    vectorised!(for (g, &x) in gradient.iter_mut().zip(x) {
        *g *= derivative(x);
    });
}

/// Of x F(x) with F the normal distribution function: F(x) + x f(x) with its density f.
#[inline(always)]
fn gelu(x: f32) -> f32 {
    const INVERSE_SQRT_2_PI: f32 = 0.398_942_3;
    let distribution = 0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2));
    distribution + x * INVERSE_SQRT_2_PI * exp_nonpositive(-0.5 * x * x)
}

#[inline(always)]
fn gelu_tanh(x: f32) -> f32 {
    const SQRT_2_OVER_PI: f32 = 0.797_884_6;
    const CUBE: f32 = 0.044_715;
    let t = tanh(SQRT_2_OVER_PI * (x + CUBE * x * x * x));
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * SQRT_2_OVER_PI * (1.0 + 3.0 * CUBE * x * x)
}

#[inline(always)]
fn silu(x: f32) -> f32 {
    let s = sigmoid(x);
    s * (1.0 + x * (1.0 - s))
}
