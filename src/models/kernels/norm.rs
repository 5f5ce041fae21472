//! Normalisation of each row: layer norm, `(x - mean) / sqrt(variance + eps) * weight + bias` (Ba et al. 2016), and RMS
//! norm, `x / sqrt(mean square + eps) * weight` (Zhang and Sennrich 2019).

use multiversion::multiversion;
use rayon::prelude::*;
use std::ops::Range;

/// Elements a thread takes at once.
const CHUNK: usize = 4096;

/// Partial sums that a vector register (or two) holds; a fixed number, so that sums have one order everywhere.
const LANES: usize = 16;

/// Normalises the rows of `x` (each as long as `weight` and `bias`) into `out`, with the population variance.
pub fn layer_norm(out: &mut [f32], x: &[f32], weight: &[f32], bias: &[f32], eps: f32) {
    let width = weight.len();
    let rows = (CHUNK / width).max(1);
    let chunks = out.par_chunks_mut(rows * width).zip(x.par_chunks(rows * width));
    chunks.for_each(|(out, x)| normalise_rows(out, x, weight, bias, eps));
}

/// Divides the rows of `x` (each as long as `weight`) by the roots of their mean squares, into `out`.
pub fn rms_norm(out: &mut [f32], x: &[f32], weight: &[f32], eps: f32) {
    let width = weight.len();
    let rows = (CHUNK / width).max(1);
    let chunks = out.par_chunks_mut(rows * width).zip(x.par_chunks(rows * width));
    chunks.for_each(|(out, x)| {
        out.copy_from_slice(x);
        rms_rows(out, width, 0..width, weight, eps);
    });
}

/// RMS norm in place of every segment as long as `weight` within the `columns` of the rows of `x`, `width` long.
pub fn rms_norm_segments(x: &mut [f32], width: usize, columns: Range<usize>, weight: &[f32], eps: f32) {
    let rows = (CHUNK / width).max(1);
    x.par_chunks_mut(rows * width).for_each(|x| rms_rows(x, width, columns.clone(), weight, eps));
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
fn rms_rows(x: &mut [f32], width: usize, columns: Range<usize>, weight: &[f32], eps: f32) {
    for row in x.chunks_exact_mut(width) {
        for segment in row[columns.clone()].chunks_exact_mut(weight.len()) {
            let mean_square = sum(segment, |v| v * v) / weight.len() as f32;
            let scale = 1.0 / (mean_square + eps).sqrt();
            segment.iter_mut().zip(weight).for_each(|(v, &w)| *v = *v * scale * w);
        }
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw+avx512dq+avx512vl", "x86_64+avx2"))]
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
fn sum(values: &[f32], term: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0f32; LANES];
    let (blocks, rest) = values.as_chunks::<LANES>();
    for block in blocks {
        for (lane, &v) in lanes.iter_mut().zip(block) {
            *lane += term(v);
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
