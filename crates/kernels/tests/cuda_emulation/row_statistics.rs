//! The statistics of rows of logits, compared with the definition in f64 and with the CPU kernel.

use crate::emulator::{Arguments, Emulator};
use crate::{close, noise};
use kernels::activation::soft_cap;
use kernels::cuda;
use kernels::row_statistics::reduce_row;

/// Sums in f32 of several hundred terms in a thread, joined in nine steps, each rounded.
const TOLERANCE: f64 = 3e-6;

struct Case {
    columns: usize,
    /// Elements between a boundary of 16 bytes and the first row.
    skipped: usize,
    /// The vocabulary entry of the first column.
    first: usize,
    product: Vec<f32>,
    bias: Option<Vec<f32>>,
    cap: f32,
    targets: Vec<u32>,
}

impl Case {
    fn run(&self, emulator: &Emulator) -> Vec<[f32; cuda::ROW_NUMBERS]> {
        let (lanes, _) = cuda::rows_per_block(self.columns);
        let product: Vec<f32> = [vec![0.0; self.skipped], self.product.clone()].concat();
        let arguments = Arguments::new()
            .number(self.targets.len())
            .number(self.columns)
            .number(self.first)
            .number(lanes)
            .number(usize::from(self.bias.is_some()))
            .number(self.skipped)
            .floats(&[self.cap])
            .floats(&product)
            .floats(self.bias.as_deref().unwrap_or_default())
            .whole(&self.targets);
        let out = emulator.run(arguments);
        assert_eq!(out.len(), self.targets.len() * cuda::ROW_NUMBERS);
        out.as_chunks().0.to_vec()
    }

    fn logits(&self, row: usize) -> Vec<f64> {
        let product = &self.product[row * self.columns..][..self.columns];
        let biased = |(i, &x): (usize, &f32)| self.bias.as_ref().map_or(x, |bias| x + bias[i]);
        let cap = f64::from(self.cap);
        let capped = |x: f32| if cap > 0.0 { cap * (f64::from(x) / cap).tanh() } else { f64::from(x) };
        product.iter().enumerate().map(biased).map(capped).collect()
    }

    /// Checks all numbers and returns the largest error.
    fn check(&self, emulator: &Emulator) -> f64 {
        let mut worst = 0f64;
        for (row, got) in self.run(emulator).into_iter().enumerate() {
            let logits = self.logits(row);
            let target = (self.targets[row] as usize).checked_sub(self.first).and_then(|column| logits.get(column));
            let want = defined(&logits, target.copied());
            for (i, (got, want)) in got.into_iter().zip(want).enumerate() {
                let what = format!("{} row {row} number {i}", self.columns);
                worst = worst.max(close(got.into(), want, TOLERANCE, &what));
            }
        }
        worst
    }
}

/// Maximum, weight, mean, squares and target logit; weights below e^-87 are negligible.
fn defined(logits: &[f64], target: Option<f64>) -> [f64; cuda::ROW_NUMBERS] {
    let max = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = |f: &dyn Fn(f64) -> f64| -> f64 {
        let possible = logits.iter().map(|x| x - max).filter(|y| *y > f64::NEG_INFINITY);
        possible.map(|y| y.exp() * f(y)).sum()
    };
    let weight = sum(&|_| 1.0);
    let mean = sum(&|y| y) / weight;
    [max, weight, mean, sum(&|y| (y - mean).powi(2)), target.unwrap_or(f64::NAN)]
}

fn emulator() -> Emulator {
    Emulator::new(&cuda::row_statistics(), "row_statistics")
}

#[test]
#[ignore = "needs a C++ compiler"]
fn rows_of_every_width_and_alignment_equal_the_definition() {
    let emulator = emulator();
    let mut worst = 0f64;
    for columns in [1, 2, 7, 16, 31, 33, 130, 513, 1024, 3001, 4095, 4096, 4099, 9001, 50_304] {
        let wide = columns > 4096;
        for skipped in 0..if wide { 2 } else { 4 } {
            let rows = if wide { 2 } else { 11 };
            // Flat, usual, spiky and far apart.
            let scale = [0.02, 2.0, 30.0, 300.0][(columns + skipped) % 4];
            let product: Vec<f32> = noise(rows * columns, 5).iter().map(|x| scale * x * x * x).collect();
            let bias = (skipped % 2 == 1).then(|| noise(columns, 6));
            let cap = if skipped % 4 > 1 { 15.0 } else { 0.0 };
            let first = 100 * (skipped % 3);
            let targets = (0..rows).map(|row| (first + row * 7919 % (columns + 3)) as u32).collect();
            let case = Case { columns, skipped, first, product, bias, cap, targets };
            worst = worst.max(case.check(&emulator));
        }
    }
    println!("largest error {worst:e}");
}

#[test]
#[ignore = "needs a C++ compiler"]
fn impossible_tokens_have_no_weight_and_a_nan_is_propagated() {
    let emulator = emulator();
    for columns in [1, 5, 40, 700, 5000] {
        // Rows: all impossible; one possible; every third impossible; a NaN at each end; +inf; a NaN alone.
        let mut product = noise(7 * columns, 8);
        let (possible, last) = (columns / 2, columns - 1);
        product[..2 * columns].fill(f32::NEG_INFINITY);
        product[columns + possible] = -3.5;
        product[2 * columns..3 * columns].iter_mut().skip(1).step_by(3).for_each(|x| *x = f32::NEG_INFINITY);
        product[3 * columns] = f32::NAN;
        product[4 * columns + last] = f32::NAN;
        product[5 * columns + possible] = f32::INFINITY;
        product[6 * columns..].fill(f32::NEG_INFINITY);
        product[6 * columns + possible] = f32::NAN;
        let targets = vec![possible as u32; 7];
        let case = Case { columns, skipped: 1, first: 0, product, bias: None, cap: 0.0, targets };
        let got = case.run(&emulator);
        assert_eq!(got[0], [f32::NEG_INFINITY, 0.0, 0.0, 0.0, f32::NEG_INFINITY]);
        assert_eq!(got[1][..2], [-3.5, 1.0], "{columns}");
        // The sum of thousands of weights of e^-87.
        assert!((0.0..1e-25).contains(&-got[1][2]) && (0.0..1e-25).contains(&got[1][3]), "{:?}", got[1]);
        for (i, want) in defined(&case.logits(2), Some(case.logits(2)[possible])).into_iter().enumerate() {
            close(got[2][i].into(), want, TOLERANCE, "every third impossible");
        }
        assert!(got[3..].iter().all(|row| row[1].is_nan()), "{got:?}");
        assert!(got[6][4].is_nan() && got[6][0] == f32::NEG_INFINITY);
    }
}

/// One dominant token: the rest is far below it, so that a difference of large sums would be visible.
#[test]
#[ignore = "needs a C++ compiler"]
fn one_dominant_token_leaves_squares_of_zero_not_below() {
    let emulator = emulator();
    for (height, most) in [(200.0, 1e-25), (60.0, 1e-18)] {
        let mut product = vec![0f32; 5003];
        product[4711] = height;
        let case = Case { columns: 5003, skipped: 3, first: 0, product, bias: None, cap: 0.0, targets: vec![0] };
        let got = case.run(&emulator)[0];
        assert_eq!((got[0], got[1]), (height, 1.0));
        assert!(got[3] >= 0.0 && got[3] < most, "{got:?}");
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn the_cpu_kernel_gives_the_same_statistics() {
    let (rows, columns) = (16, 3001);
    let product: Vec<f32> = noise(rows * columns, 3).iter().map(|x| 9.0 * x).collect();
    let mut bias = noise(columns, 4);
    bias.iter_mut().step_by(5).for_each(|x| *x = f32::NEG_INFINITY);
    let targets: Vec<u32> = (0..rows).map(|row| (row * 5 + 1) as u32).collect();
    for cap in [0.0, 12.0] {
        let case = Case {
            columns,
            skipped: 2,
            first: 0,
            product: product.clone(),
            bias: Some(bias.clone()),
            cap,
            targets: targets.clone(),
        };
        for (row, got) in case.run(&emulator()).into_iter().enumerate() {
            let logits = product[row * columns..][..columns].iter().zip(&bias).map(|(x, b)| x + b);
            let mut logits: Vec<f32> = logits.collect();
            if cap > 0.0 {
                soft_cap(&mut logits, 1.0, cap);
            }
            let want = reduce_row(&logits);
            let [max, weight, mean, squares, target] = got.map(f64::from);
            // The difference of two logits of size 10 in f32, and twice the tolerance of the kernels.
            let same = |got, want, what| close(got, want, 1e-5, what);
            same(max, want.max, "max");
            same(weight.ln(), want.weight.ln(), "weight");
            same(max + mean, want.mean, "mean");
            same(squares / weight, want.squares / want.weight, "var");
            same(target, logits[targets[row] as usize].into(), "target");
        }
    }
}
