//! The statistics of logits.

use crate::{compare, gpu, noise};
use candle_core::{DType, Device, Tensor};
use lm::models::cuda::{LogitRows, RowStatistics};
use lm::models::logit_stats::{Head, logit_stats, plain_logit_stats};
use lm::models::ops::Weight;

const TYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];
const WIDTH: usize = 64;

struct Case {
    hidden: Tensor,
    weight: Tensor,
    bias: Option<Tensor>,
    soft_cap: Option<f64>,
    targets: Vec<u32>,
}

impl Case {
    /// Logits of magnitude `scale`, on the CPU in f32.
    fn new(rows: usize, vocab: usize, scale: f32, bias: bool, soft_cap: Option<f64>) -> Self {
        let tensor = |values, shape: &[usize]| Tensor::from_vec(values, shape, &Device::Cpu).unwrap();
        Self {
            hidden: tensor(noise(rows * WIDTH, 0.375 * scale, 1), &[rows, WIDTH]),
            weight: tensor(noise(vocab * WIDTH, 1.0, 2), &[vocab, WIDTH]),
            bias: bias.then(|| tensor(noise(vocab, scale, 3), &[vocab])),
            soft_cap,
            targets: (0..rows).map(|row| (row * 7919 % vocab) as u32).collect(),
        }
    }

    fn on(&self, device: &Device, dtype: DType) -> (Tensor, Head) {
        let moved = |tensor: &Tensor| tensor.to_dtype(dtype).unwrap().to_device(device).unwrap();
        let weight = Weight::Plain(moved(&self.weight)).into();
        let head = Head { weight, bias: self.bias.as_ref().map(moved), soft_cap: self.soft_cap };
        (moved(&self.hidden), head)
    }
}

#[test]
fn there_is_a_kernel() {
    let Some(gpu) = gpu() else { return };
    assert!(RowStatistics::new(&gpu).unwrap().is_some());
    assert!(RowStatistics::new(&Device::Cpu).unwrap().is_none());
}

/// In a half type candle's logits are rounded to it.
#[test]
fn the_kernel_equals_candles_operations_and_the_cpu() {
    let Some(gpu) = gpu() else { return };
    for (rows, vocab) in [(1, 3), (5, 432), (7, 1023), (300, 2500), (9, 50_257), (64, 50_304), (40_000, 3000)] {
        for (scale, bias, soft_cap) in [(0.02, false, None), (2.0, true, None), (12.0, true, Some(20.0))] {
            let case = Case::new(rows, vocab, scale, bias, soft_cap);
            for dtype in TYPES {
                let (hidden, head) = case.on(&gpu, dtype);
                let got = logit_stats(&hidden, &head, &case.targets).unwrap();
                let plain = plain_logit_stats(&hidden, &head, &case.targets).unwrap();
                let what = format!("{rows} rows of {vocab} in {dtype:?}, scale {scale}");
                // Both sum up to 50,304 terms in f32, and exponentials on the GPU have errors of 2 units in the last
                // place and more. Logits of size 40 are rounded by 2^-9 and 2^-6 of themselves at most.
                let most = match dtype {
                    DType::F32 => 3e-5,
                    DType::F16 => 0.05,
                    _ => 0.4,
                };
                let error = compare(&got, &plain, most, &what);
                println!("{what}: {error:.1e} from candle's operations");
            }
            let (hidden, head) = case.on(&gpu, DType::F32);
            let got = logit_stats(&hidden, &head, &case.targets).unwrap();
            let (hidden, head) = case.on(&Device::Cpu, DType::F32);
            let want = logit_stats(&hidden, &head, &case.targets).unwrap();
            // f32 logits of size up to 40 have 4e-6 of rounding; squares of distances up to 40 amplify it.
            compare(&got, &want, 5e-5, &format!("{rows} rows of {vocab} against the CPU, scale {scale}"));
        }
    }
}

/// Compared with the definition in f64, computed from the product as it is in memory.
#[test]
fn numbers_of_a_tile_equal_the_definition() {
    let Some(gpu) = gpu() else { return };
    let kernel = RowStatistics::new(&gpu).unwrap().unwrap();
    for (rows, columns) in [(3, 1), (17, 131), (9, 4095), (5, 50_257), (4, 50_304)] {
        let (first, targets) = (1000, Tensor::full(1000u32, rows, &gpu).unwrap());
        let product = Tensor::from_vec(noise(rows * columns, 9.0, 4), (rows, columns), &gpu).unwrap();
        let rows = LogitRows { product: &product, bias: None, soft_cap: None, targets: &targets, first };
        let got: Vec<Vec<f32>> = kernel.reduce(&rows).unwrap().to_vec2().unwrap();
        let logits: Vec<Vec<f64>> = product.to_dtype(DType::F64).unwrap().to_vec2().unwrap();
        for (got, logits) in got.iter().zip(&logits) {
            let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum = |f: &dyn Fn(f64) -> f64| logits.iter().map(|x| (x - max).exp() * f(x - max)).sum::<f64>();
            let weight = sum(&|_| 1.0);
            let mean = sum(&|y| y) / weight;
            let want = [max, weight, mean, sum(&|y| (y - mean).powi(2)), logits[0]];
            for (got, want) in got.iter().zip(want) {
                let error = (f64::from(*got) - want).abs() / (1.0 + want.abs());
                // Three times the tolerance of the emulation, to allow for the GPU's exponential.
                assert!(error <= 3e-6, "{columns}: {got} but wanted {want}");
            }
        }
    }
}

#[test]
fn impossible_tokens_have_no_weight_and_a_nan_is_propagated() {
    let Some(gpu) = gpu() else { return };
    for vocab in [40, 5000] {
        let mut case = Case::new(3, vocab, 2.0, true, None);
        let with = |case: &mut Case, values: Vec<f32>| {
            case.bias = Some(Tensor::from_vec(values, vocab, &Device::Cpu).unwrap());
        };
        let mut bias = noise(vocab, 2.0, 5);
        bias.iter_mut().skip(3).step_by(2).for_each(|x| *x = f32::NEG_INFINITY);
        case.targets.fill(2);
        with(&mut case, bias.clone());
        for dtype in TYPES {
            let (hidden, head) = case.on(&gpu, dtype);
            let got = logit_stats(&hidden, &head, &case.targets).unwrap();
            let plain = plain_logit_stats(&hidden, &head, &case.targets).unwrap();
            let most = if dtype == DType::F32 { 3e-5 } else { 0.1 };
            compare(&got, &plain, most, &format!("{dtype:?} {vocab}"));
        }
        bias[vocab - 1] = f32::NAN;
        with(&mut case, bias);
        for dtype in TYPES {
            let (hidden, head) = case.on(&gpu, dtype);
            for form in [logit_stats, plain_logit_stats] {
                let got = form(&hidden, &head, &case.targets).unwrap();
                assert!(got.iter().all(|row| row.lp.is_nan() && row.mu.is_nan() && row.var.is_nan()), "{dtype:?}");
            }
        }
    }
}

#[test]
fn mismatched_shapes_and_tracked_tensors_are_refused() {
    let Some(gpu) = gpu() else { return };
    let kernel = RowStatistics::new(&gpu).unwrap().unwrap();
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &gpu).unwrap();
    let (product, targets) = (zeros(&[4, 10]), Tensor::zeros(4, DType::U32, &gpu).unwrap());
    let refused = |product: &Tensor, bias: Option<&Tensor>, targets: &Tensor| {
        let rows = LogitRows { product, bias, soft_cap: None, targets, first: 0 };
        kernel.reduce(&rows).is_err()
    };
    assert!(!refused(&product, Some(&zeros(&[10])), &targets));
    assert!(refused(&product, Some(&zeros(&[9])), &targets));
    assert!(refused(&product, None, &targets.narrow(0, 0, 3).unwrap()));
    assert!(refused(&product.t().unwrap(), None, &Tensor::zeros(10, DType::U32, &gpu).unwrap()));
    assert!(refused(&product.to_dtype(DType::BF16).unwrap(), None, &targets));
    assert!(refused(&product.to_device(&Device::Cpu).unwrap(), None, &targets));
    let tracked = candle_core::Var::from_tensor(&product).unwrap();
    assert!(refused(tracked.as_tensor(), None, &targets));
}
