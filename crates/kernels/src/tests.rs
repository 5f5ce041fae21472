//! Every element-wise kernel at every level of this machine: the same bits, for rows of every length and numbers of
//! every kind. Only the bits of a NaN may differ: the compiler chooses which operand's they are.

use super::activation::{apply, gate, soft_cap};
use super::attention::{AttentionShape, Visibility, causal};
use super::conv::causal_conv;
use super::gemm::MatrixView;
use super::norm::layer_norm;
use super::rms_norm::{rms_norm, rms_norm_columns};
use super::scan::{ScanInput, ScanShape, ScanWeights, TimeStep, selective_scan};
use super::simd::at_each_level;
use crate::activation::Activation;

/// More than two vectors of every level, with a tail of any length.
const LENGTHS: std::ops::Range<usize> = 0..71;

const SPECIAL: [f32; 12] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    f32::MAX,
    f32::MIN_POSITIVE,
    1e-40,
    -1e-45,
    -87.0,
    88.5,
    -1e30,
];

/// Numbers in [-10, 10); one in `one_in` is a special value.
fn numbers(count: usize, seed: u64, one_in: Option<u64>) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut number = || match one_in {
        Some(one_in) if next() % one_in == 0 => SPECIAL[next() as usize % SPECIAL.len()],
        _ => next() as f32 / (1u64 << 31) as f32 * 20.0 - 10.0,
    };
    (0..count).map(|_| number()).collect()
}

/// Runs the kernel at each level on ordinary numbers, with a few special ones, and with many.
fn has_the_same_bits(what: &str, kernel: impl Fn(&dyn Fn(usize, u64) -> Vec<f32>) -> Vec<f32>) {
    for one_in in [None, Some(40), Some(3)] {
        let results = at_each_level(|| kernel(&|count, seed| numbers(count, seed, one_in)));
        let (_, first) = &results[0];
        for (level, result) in &results {
            assert_eq!(result.len(), first.len(), "{what} at {level:?}");
            for (index, (a, b)) in result.iter().zip(first).enumerate() {
                let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
                assert!(same, "{what} at {level:?}, one in {one_in:?} special: {a:e} at index {index}, not {b:e}");
            }
        }
    }
}

#[test]
fn activations_have_the_same_bits_at_every_level() {
    for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu] {
        for length in LENGTHS {
            has_the_same_bits(&format!("{activation:?} of {length}"), |numbers| {
                let mut values = numbers(length, 1);
                apply(activation, &mut values);
                values
            });
        }
        has_the_same_bits(&format!("gate {activation:?}"), |numbers| {
            let mut out = vec![0.0; 5 * 37];
            gate(activation, &mut out, &numbers(2 * 5 * 37, 2), 37);
            out
        });
    }
    for length in LENGTHS {
        has_the_same_bits(&format!("soft cap of {length}"), |numbers| {
            let mut values = numbers(length, 3);
            soft_cap(&mut values, 0.7, 30.0);
            values
        });
    }
}

#[test]
fn norms_have_the_same_bits_at_every_level() {
    for width in LENGTHS.skip(1) {
        has_the_same_bits(&format!("layer norm of {width}"), |numbers| {
            let mut out = vec![0.0; 3 * width];
            layer_norm(&mut out, &numbers(3 * width, 4), &numbers(width, 5), &numbers(width, 6), 1e-5);
            out
        });
        has_the_same_bits(&format!("RMS norm of {width}"), |numbers| {
            let mut out = vec![0.0; 6 * width];
            rms_norm(&mut out, &numbers(6 * width, 7), &numbers(2 * width, 8), 2, 1e-5);
            out
        });
        has_the_same_bits(&format!("RMS norm of columns of {width}"), |numbers| {
            let mut x = numbers(3 * (2 * width + 3), 9);
            rms_norm_columns(&mut x, 2 * width + 3, 2..2 + 2 * width, &numbers(width, 10), 1e-5);
            x
        });
    }
}

#[test]
fn attention_has_the_same_bits_at_every_level() {
    // Row i of a sequence has i + 1 scores, so that a sequence of 70 has every length of row.
    let lengths = [70usize, 1, 0, 5];
    let ends: Vec<usize> = lengths.iter().scan(0, |end, n| Some(std::mem::replace(end, *end + n) + n)).collect();
    let sequences: Vec<_> = ends.iter().zip(lengths).map(|(&end, n)| end - n..end).collect();
    for soft_cap in [None, Some(5.0)] {
        for visibility in [Visibility::Past, Visibility::Window(9)] {
            let shape = AttentionShape { heads: 4, kv_heads: 2, head_dim: 6, scale: 0.4, soft_cap };
            has_the_same_bits(&format!("attention {soft_cap:?} {visibility:?}"), |numbers| {
                let mut out = vec![0.0; 76 * shape.out_width()];
                causal(&mut out, &numbers(76 * shape.qkv_width(), 11), &sequences, shape, visibility, None);
                out
            });
        }
    }
}

#[test]
fn convolutions_have_the_same_bits_at_every_level() {
    let positions: Vec<usize> = (0..9).chain(0..2).collect();
    for channels in LENGTHS.skip(1) {
        has_the_same_bits(&format!("convolution of {channels} channels"), |numbers| {
            let mut out = vec![0.0; positions.len() * channels];
            let x = numbers(positions.len() * channels, 12);
            let view = MatrixView::rows(&x, channels);
            causal_conv(&mut out, view, &numbers(4 * channels, 13), &numbers(channels, 14), &positions);
            out
        });
    }
}

#[test]
fn scans_have_the_same_bits_at_every_level() {
    const TOKENS: usize = 12;
    for head_dim in LENGTHS.skip(1) {
        for time_step in [TimeStep::PerChannel, TimeStep::PerHead] {
            let shape = ScanShape { heads: 2, head_dim, groups: 1, states: 3, time_step };
            let rates = if time_step == TimeStep::PerHead { 2 } else { 3 * shape.channels() };
            has_the_same_bits(&format!("scan {shape:?}"), |numbers| {
                let matrix = |columns: usize, seed| numbers(TOKENS * columns, seed);
                let [x, gate] = [15, 16].map(|seed| matrix(shape.channels(), seed));
                let [b, c] = [17, 18].map(|seed| matrix(shape.mixing_width(), seed));
                let time_steps = matrix(shape.time_steps(), 19);
                let input = ScanInput {
                    x: MatrixView::rows(&x, shape.channels()),
                    gate: MatrixView::rows(&gate, shape.channels()),
                    time_steps: MatrixView::rows(&time_steps, shape.time_steps()),
                    b: MatrixView::rows(&b, shape.mixing_width()),
                    c: MatrixView::rows(&c, shape.mixing_width()),
                };
                let a: Vec<f32> = numbers(rates, 20).iter().map(|a| -a.abs()).collect();
                let [d, time_bias] = [21, 22].map(|seed| numbers(shape.time_steps(), seed));
                let weights = ScanWeights { a: &a, d: &d, time_bias: &time_bias, time_limit: (1e-3, 8.0) };
                let mut out = vec![0.0; TOKENS * shape.channels()];
                selective_scan(&mut out, &input, &weights, &[0..7, 7..TOKENS], shape);
                out
            });
        }
    }
}
