//! Root-mean-square normalisation (Zhang and Sennrich 2019): `x / sqrt(mean(x^2) + eps) * weight`.

use super::norm::{CHUNK, sum};
use super::simd::vectorised;
use rayon::prelude::*;
use std::ops::Range;

/// Normalises the rows of `x` (each as long as `weight`) into `out`. A row is divided into `groups` equal parts, each
/// of which is normalised by its own mean square; the weight applies to the whole row.
pub fn rms_norm(out: &mut [f32], x: &[f32], weight: &[f32], groups: usize, eps: f32) {
    let width = weight.len();
    let rows = (CHUNK / width).max(1);
    let chunks = out.par_chunks_mut(rows * width).zip(x.par_chunks(rows * width));
    chunks.for_each(|(out, x)| vectorised!(normalise_rows(out, x, weight, groups, eps)));
}

#[inline(always)]
fn normalise_rows(out: &mut [f32], x: &[f32], weight: &[f32], groups: usize, eps: f32) {
    let width = weight.len() / groups;
    // The parts of all rows in order, each with the part of the weight that belongs to it.
    let parts = out.chunks_exact_mut(width).zip(x.chunks_exact(width));
    for ((out, x), weight) in parts.zip(weight.chunks_exact(width).cycle()) {
        let scale = 1.0 / (sum(x, |v| v * v) / width as f32 + eps).sqrt();
        for ((out, &x), &w) in out.iter_mut().zip(x).zip(weight) {
            *out = x * scale * w;
        }
    }
}

/// Like [`rms_norm`], but in place, for every segment as long as `weight` within the given `columns` of the rows of
/// `x`, each `width` long.
pub fn rms_norm_columns(x: &mut [f32], width: usize, columns: Range<usize>, weight: &[f32], eps: f32) {
    let rows = (CHUNK / width).max(1);
    x.par_chunks_mut(rows * width).for_each(|x| {
        let columns = columns.clone();
        vectorised!(normalise_columns(x, width, columns, weight, eps));
    });
}

#[inline(always)]
fn normalise_columns(x: &mut [f32], width: usize, columns: Range<usize>, weight: &[f32], eps: f32) {
    for row in x.chunks_exact_mut(width) {
        for part in row[columns.clone()].chunks_exact_mut(weight.len()) {
            let scale = 1.0 / (sum(part, |v| v * v) / weight.len() as f32 + eps).sqrt();
            for (v, &w) in part.iter_mut().zip(weight) {
                *v = *v * scale * w;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_normalised_by_its_own_mean() {
        let weight = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let x: Vec<f32> = (0..18).map(|i| (i * i % 7) as f32 - 2.5).collect();
        for groups in [1, 2, 3] {
            let mut out = vec![f32::NAN; x.len()];
            rms_norm(&mut out, &x, &weight, groups, 0.5);
            let width = weight.len() / groups;
            for (i, (&got, &value)) in out.iter().zip(&x).enumerate() {
                let part = &x[i / width * width..][..width];
                let mean = part.iter().map(|&v| f64::from(v * v)).sum::<f64>() / width as f64;
                let want = f64::from(value * weight[i % weight.len()]) / (mean + 0.5).sqrt();
                // Three roundings of f32 and those of the sum.
                assert!((f64::from(got) - want).abs() <= 1e-6 * (1.0 + want.abs()), "{groups} groups, element {i}");
            }
        }
    }

    #[test]
    fn columns_are_normalised_in_place_and_the_others_left_alone() {
        let x: Vec<f32> = (0..20).map(|i| (i * i % 7) as f32 - 2.5).collect();
        let mut got = x.clone();
        rms_norm_columns(&mut got, 10, 2..8, &[1.0, 2.0, 3.0], 0.5);
        for (row, (got, x)) in got.chunks(10).zip(x.chunks(10)).enumerate() {
            let mut want = x.to_vec();
            rms_norm(&mut want[2..8], &x[2..8], &[1.0, 2.0, 3.0, 1.0, 2.0, 3.0], 2, 0.5);
            assert_eq!(got, want, "row {row}");
        }
    }
}
