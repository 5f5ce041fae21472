//! The short causal convolution before a selective scan, one filter per channel, followed by SiLU.

use super::gemm::MatrixView;
use super::sigmoid::silu;
use super::simd::vectorised;
use rayon::prelude::*;

/// Rows per task.
const ROWS: usize = 16;

/// `out[t, c] = silu(bias[c] + sum_k taps[k, c] x[t - K + 1 + k, c])`, where inputs before the start of the sequence
/// are zero.
///
/// `out` is `[tokens, channels]`, `x` the same with rows of any stride, `taps` `[K, channels]`, `bias` `[channels]`;
/// `positions` are the tokens' positions in their sequences.
///
/// # Panics
/// If the sizes of the slices do not match: an error of the caller, never of a request.
pub fn causal_conv(out: &mut [f32], x: MatrixView, taps: &[f32], bias: &[f32], positions: &[usize]) {
    let channels = bias.len();
    assert_eq!(out.len(), positions.len() * channels, "conv: rows");
    let chunks = out.par_chunks_mut(ROWS * channels).enumerate();
    chunks.for_each(|(chunk, out)| vectorised!(convolve_rows(out, x, taps, bias, positions, chunk * ROWS)));
}

#[inline(always)]
fn convolve_rows(out: &mut [f32], x: MatrixView, taps: &[f32], bias: &[f32], positions: &[usize], first: usize) {
    let channels = bias.len();
    for (i, out) in out.chunks_exact_mut(channels).enumerate() {
        let row = first + i;
        out.copy_from_slice(bias);
        // The last tap belongs to the token itself, the one before it to the previous token, and so on within the
        // sequence.
        for (back, taps) in taps.chunks_exact(channels).rev().enumerate().take(positions[row] + 1) {
            let x = &x.data[(row - back) * x.row_stride..][..channels];
            for ((out, &x), &tap) in out.iter_mut().zip(x).zip(taps) {
                *out += tap * x;
            }
        }
        for out in out.iter_mut() {
            *out = silu(*out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_convolution_equals_its_definition_and_stops_at_the_start_of_a_sequence() {
        let (channels, kernel, stride, lengths) = (3, 4, 5, [1usize, 6, 2, 30]);
        let positions: Vec<usize> = lengths.iter().flat_map(|&n| 0..n).collect();
        let value = |i: usize| ((i * 37 + 11) % 23) as f32 / 10.0 - 1.0;
        let x: Vec<f32> = (0..positions.len() * stride).map(value).collect();
        let taps: Vec<f32> = (100..100 + kernel * channels).map(value).collect();
        let bias: Vec<f32> = (200..200 + channels).map(value).collect();
        let mut out = vec![f32::NAN; positions.len() * channels];
        causal_conv(&mut out, MatrixView::rows(&x[1..], stride), &taps, &bias, &positions);
        for (t, &position) in positions.iter().enumerate() {
            for c in 0..channels {
                let seen = (0..kernel).filter(|k| position + k + 1 >= kernel);
                let term = |k: usize| f64::from(taps[k * channels + c] * x[1 + (t + k + 1 - kernel) * stride + c]);
                let sum = f64::from(bias[c]) + seen.map(term).sum::<f64>();
                let want = sum / (1.0 + (-sum).exp());
                assert!((f64::from(out[t * channels + c]) - want).abs() < 2e-6, "token {t}, channel {c}");
            }
        }
    }
}
