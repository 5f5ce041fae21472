//! The gradient of a norm of rows.

use crate::norm::{CHUNK, sum};
use crate::simd::vectorised;
use rayon::prelude::*;

/// `out`, the gradient of a norm at x, from that of its result; all `[rows, width]` with the width of `weight`. `centred` says
/// whether the norm subtracts the mean, as a layer norm does and an RMS norm does not.
pub fn norm(out: &mut [f32], x: &[f32], gradient: &[f32], weight: &[f32], eps: f32, centred: bool) {
    let width = weight.len();
    let rows = (CHUNK / width).max(1) * width;
    let chunks = out.par_chunks_mut(rows).zip(x.par_chunks(rows)).zip(gradient.par_chunks(rows));
    chunks.for_each(|((out, x), gradient)| vectorised!(norm_rows(out, x, gradient, weight, eps, centred)));
}

/// With the normalised row h and g = gradient * weight: (g - mean(g) - h mean(g h)) / deviation; without the mean of g where
/// the norm does not centre.
#[inline(always)]
fn norm_rows(out: &mut [f32], x: &[f32], gradient: &[f32], weight: &[f32], eps: f32, centred: bool) {
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
