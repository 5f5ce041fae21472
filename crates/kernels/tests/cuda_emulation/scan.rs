//! The selective scan and the convolution before it, compared with the CPU kernels.

use crate::emulator::{Arguments, Emulator};
use crate::{close, noise};
use kernels::conv::causal_conv;
use kernels::cuda::{self, ScanTiling};
use kernels::gemm::MatrixView;
use kernels::scan::{ScanInput, ScanShape, ScanWeights, TimeStep, selective_scan};
use std::ops::Range;

/// Both are f32 and add up to 257 products of size 1 and more in different orders: several hundred roundings of 6e-8
/// each.
const TOLERANCE: f64 = 2e-5;
/// Lengths around the number of tokens that a block processes at a time, and an empty sequence.
const LENGTHS: [usize; 8] = [1, 33, 0, 32, 70, 2, 16, 17];

fn ranges(lengths: &[usize]) -> Vec<Range<usize>> {
    let ends = lengths.iter().scan(0, |end, n| {
        *end += n;
        Some(*end)
    });
    ends.zip(lengths).map(|(end, n)| end - n..end).collect()
}

/// Rows of `width` columns within wider rows, starting at column `first`.
struct Varying {
    data: Vec<f32>,
    stride: usize,
    first: usize,
}

impl Varying {
    fn new(tokens: usize, width: usize, scale: f32, seed: u64) -> Self {
        let (stride, first) = (width + 3, 2);
        Self { data: noise(tokens * stride, seed).iter().map(|x| scale * x).collect(), stride, first }
    }

    fn view(&self) -> MatrixView<'_> {
        MatrixView::rows(&self.data[self.first..], self.stride)
    }
}

fn check(shape: ScanShape, time_limit: (f32, f32), poison: bool) -> f64 {
    let tokens = LENGTHS.iter().sum();
    let (channels, steps, mixing) = (shape.channels(), shape.time_steps(), shape.mixing_width());
    let mut varying = [
        Varying::new(tokens, channels, 2.0, 1),
        Varying::new(tokens, channels, 4.0, 2),
        Varying::new(tokens, steps, 3.0, 3),
        Varying::new(tokens, mixing, 1.0, 4),
        Varying::new(tokens, mixing, 1.0, 5),
    ];
    if poison {
        // In the second sequence.
        varying[2].data[4 * varying[2].stride + 2] = f32::NAN;
    }
    let per_step = if shape.time_step == TimeStep::PerHead { 1 } else { shape.states };
    // Decays from almost none to abrupt.
    let a: Vec<f32> = noise(per_step * steps, 6).iter().map(|x| -(4.0 * x).exp()).collect();
    let (d, time_bias) = (noise(steps, 7), noise(steps, 8).iter().map(|x| x - 2.0).collect::<Vec<_>>());
    let sequences = ranges(&LENGTHS);

    let mut want = vec![0f32; tokens * channels];
    let [x, gate, time_steps, b, c] = varying.each_ref().map(Varying::view);
    let input = ScanInput { x, gate, time_steps, b, c };
    let weights = ScanWeights { a: &a, d: &d, time_bias: &time_bias, time_limit };
    selective_scan(&mut want, &input, &weights, &sequences, shape);

    let tiling = ScanTiling::for_shape(&shape).unwrap();
    let mut arguments = Arguments::new()
        .number(tokens)
        .number(sequences.len())
        .number(tiling.blocks(&shape))
        .number(shape.heads)
        .number(shape.head_dim)
        .number(shape.groups)
        .floats(&[time_limit.0])
        .floats(&[time_limit.1]);
    for tensor in &varying {
        arguments = arguments.number(tensor.stride).floats(&tensor.data[tensor.first..]);
    }
    let bounds: Vec<u32> = sequences.iter().flat_map(|s| [s.start as u32, s.end as u32]).collect();
    let arguments = arguments.floats(&a).floats(&d).floats(&time_bias).whole(&bounds);
    let emulator = Emulator::new(&cuda::selective_scan(&shape, &tiling), "selective_scan");
    let got = emulator.run(arguments);
    assert_eq!(got.len(), want.len());
    assert_eq!(want.iter().any(|y| y.is_nan()), poison);
    let compare = |(i, (&got, &want)): (usize, (&f32, &f32))| {
        let what = format!("{shape:?}: token {}, channel {}", i / channels, i % channels);
        close(got.into(), want.into(), TOLERANCE, &what)
    };
    got.iter().zip(&want).enumerate().map(compare).fold(0.0, f64::max)
}

fn per_channel(channels: usize, states: usize) -> ScanShape {
    ScanShape { heads: 1, head_dim: channels, groups: 1, states, time_step: TimeStep::PerChannel }
}

fn per_head(heads: usize, head_dim: usize, groups: usize, states: usize) -> ScanShape {
    ScanShape { heads, head_dim, groups, states, time_step: TimeStep::PerHead }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn scans_of_both_generations_equal_those_of_the_cpu() {
    let open = (0.0, f32::INFINITY);
    let mut worst = 0f64;
    for (shape, limit) in [
        (per_channel(130, 16), open),
        (per_channel(5, 1), open),
        (per_channel(70, 5), (0.05, 0.4)),
        (per_channel(9, 33), open),
        (per_head(2, 64, 1, 128), open),
        (per_head(6, 40, 3, 7), open),
        (per_head(4, 8, 2, 16), (0.02, 0.2)),
        (per_head(3, 33, 3, 64), open),
        (per_head(1, 5, 1, 257), open),
    ] {
        worst = worst.max(check(shape, limit, false));
    }
    println!("largest error {worst:e}");
}

#[test]
#[ignore = "needs a C++ compiler"]
fn a_nan_is_propagated_as_on_the_cpu() {
    check(per_channel(70, 16), (0.0, f32::INFINITY), true);
    check(per_head(3, 20, 1, 16), (0.001, 0.4), true);
}

#[test]
#[ignore = "needs a C++ compiler"]
fn the_convolution_equals_that_of_the_cpu() {
    let tokens: usize = LENGTHS.iter().sum();
    let positions: Vec<usize> = LENGTHS.iter().flat_map(|&n| 0..n).collect();
    let emulator = Emulator::new(&cuda::causal_conv(), "causal_conv");
    for (channels, kernel) in [(1, 1), (5, 4), (300, 4), (257, 5)] {
        let x = Varying::new(tokens, channels, 3.0, 9);
        let (taps, bias) = (noise(kernel * channels, 10), noise(channels, 11));
        let mut want = vec![0f32; tokens * channels];
        causal_conv(&mut want, x.view(), &taps, &bias, &positions);
        let arguments = Arguments::new()
            .number(tokens)
            .number(x.stride)
            .number(channels)
            .number(kernel)
            .floats(&x.data[x.first..])
            .floats(&taps)
            .floats(&bias)
            .whole(&positions.iter().map(|&p| p as u32).collect::<Vec<_>>());
        for (i, (got, want)) in emulator.run(arguments).into_iter().zip(want).enumerate() {
            // A sum of six products of size 3, in the same order, with or without fused multiply-adds.
            close(got.into(), want.into(), 1e-6, &format!("{channels} {kernel}: {i}"));
        }
    }
}
