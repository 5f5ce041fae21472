//! Layer normalisation of each row: `(x - mean) / sqrt(variance + eps) * weight + bias` (Ba et al. 2016),
//! and the gradient of a norm.

use super::simd::vectorised;
use rayon::prelude::*;

/// The kind of a norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NormKind {
    /// Mean and variance, with weight and bias (Ba et al. 2016).
    Layer,
    /// Root mean square, with a weight (Zhang and Sennrich 2019).
    Rms,
}

/// Elements per task.
pub(super) const CHUNK: usize = 4096;

/// Number of partial sums, which one or two vector registers hold; fixed, so that sums have the same order everywhere.
const LANES: usize = 16;

/// Normalises the rows of `x` (each as long as `weight` and `bias`) into `out`, using the population variance.
pub fn layer_norm(out: &mut [f32], x: &[f32], weight: &[f32], bias: &[f32], eps: f32) {
    let width = weight.len();
    let rows = (CHUNK / width).max(1);
    let chunks = out.par_chunks_mut(rows * width).zip(x.par_chunks(rows * width));
    chunks.for_each(|(out, x)| vectorised!(normalise_rows(out, x, weight, bias, eps)));
}

#[inline(always)]
fn normalise_rows(out: &mut [f32], x: &[f32], weight: &[f32], bias: &[f32], eps: f32) {
    let width = weight.len();
    for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(width)) {
        let mean = sum(x, |v| v) / width as f32;
        let variance = sum(x, |v| (v - mean) * (v - mean)) / width as f32;
        let scale = 1.0 / (variance + eps).sqrt();
        for (((out, &x), &w), &b) in out.iter_mut().zip(x).zip(weight).zip(bias) {
            *out = (x - mean) * scale * w + b;
        }
    }
}

/// Sum of `term(v)` in `LANES` partial sums, which are then added pairwise.
#[inline(always)]
pub(super) fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for i in 0..LANES {
            lanes[i] += term(block[i]);
        }
    }
    for (lane, &v) in lanes.iter_mut().zip(rest) {
        *lane += term(v);
    }
    let mut half = LANES / 2;
    while half > 0 {
        for i in 0..half {
            lanes[i] += lanes[i + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// `out`, the gradient of a norm at x, from that of its result; all `[rows, width]` with the width of `weight`. `centred` says
/// whether the norm subtracts the mean, as a layer norm does and an RMS norm does not.
pub fn norm_gradient(out: &mut [f32], x: &[f32], gradient: &[f32], weight: &[f32], eps: f32, centred: bool) {
    let width = weight.len();
    let rows = (CHUNK / width).max(1) * width;
    let chunks = out.par_chunks_mut(rows).zip(x.par_chunks(rows)).zip(gradient.par_chunks(rows));
    chunks.for_each(|((out, x), gradient)| vectorised!(norm_gradient_rows(out, x, gradient, weight, eps, centred)));
}

/// With the normalised row h and g = gradient * weight: (g - mean(g) - h mean(g h)) / deviation; without the mean of g where
/// the norm does not centre.
#[inline(always)]
fn norm_gradient_rows(out: &mut [f32], x: &[f32], gradient: &[f32], weight: &[f32], eps: f32, centred: bool) {
    let width = weight.len();
    let rows = out.chunks_exact_mut(width).zip(x.chunks_exact(width)).zip(gradient.chunks_exact(width));
    let n = width as f32;
    for ((out, x), gradient) in rows {
        let mean = if centred { sum(x, |v| v) / n } else { 0.0 };
        let scale = 1.0 / (sum(x, |v| (v - mean) * (v - mean)) / n + eps).sqrt();
        for ((o, &g), &w) in out.iter_mut().zip(gradient).zip(weight) {
            *o = g * w;
        }
        let shift = if centred { sum(out, |g| g) / n } else { 0.0 };
        let mut products = 0f32;
        for (&g, &v) in out.iter().zip(x) {
            products += g * (v - mean);
        }
        let slope = products * scale * scale / n;
        for (o, &v) in out.iter_mut().zip(x) {
            *o = scale * (*o - shift - (v - mean) * slope);
        }
    }
}
