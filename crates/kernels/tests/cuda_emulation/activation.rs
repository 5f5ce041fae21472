//! Biases, activations and gates, compared with their definitions in f64.

use crate::elements::Element;
use crate::emulator::{Arguments, Emulator};
use crate::noise;
use kernels::activation::Activation;
use kernels::cuda;
use statrs::function::erf::erfc;

/// Relative to one plus the size of the argument, beside the rounding of the result: approximations of f32 with errors
/// of a few units in the last place.
const TOLERANCE: f64 = 1e-6;

const ACTIVATIONS: [Option<Activation>; 5] =
    [None, Some(Activation::Gelu), Some(Activation::GeluTanh), Some(Activation::Relu), Some(Activation::Silu)];

fn defined(activation: Option<Activation>, x: f64) -> f64 {
    match activation {
        None => x,
        Some(Activation::Gelu) => 0.5 * x * erfc(-x / 2f64.sqrt()),
        Some(Activation::GeluTanh) => {
            let u = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            x / (1.0 + (-2.0 * u).exp())
        }
        Some(Activation::Relu) => x.max(0.0),
        Some(Activation::Silu) => x / (1.0 + (-x).exp()),
    }
}

/// Rows of `width` elements, twice as many where they are gated.
struct Case {
    element: Element,
    activation: Option<Activation>,
    gated: bool,
    rows: usize,
    width: usize,
    biased: bool,
    skipped: usize,
}

impl Case {
    fn run(&self, emulator: &Emulator, x: &[f32], bias: &[f32]) -> Vec<f32> {
        let [lanes, per_block, across, down] = cuda::row_blocks(self.rows, self.width);
        let arguments = Arguments::new()
            .number(self.element as usize)
            .number(usize::from(self.gated))
            .number(lanes)
            .number(per_block)
            .number(across)
            .number(down)
            .number(self.rows)
            .number(self.width)
            .number(usize::from(self.biased))
            .number(self.skipped)
            .bytes(self.element.bytes(&[vec![0.0; self.skipped], x.to_vec()].concat()))
            .floats(bias);
        emulator.run(arguments)
    }

    fn check(&self, emulator: &Emulator) -> f64 {
        let columns = if self.gated { 2 * self.width } else { self.width };
        // Near 0 and far from it.
        let x: Vec<f32> = noise(self.rows * columns, 3)
            .iter()
            .enumerate()
            .map(|(i, x)| self.element.rounded([0.01, 1.0, 12.0][i % 3] * x))
            .collect();
        let bias = noise(columns, 4);
        let got = self.run(emulator, &x, &bias);
        assert_eq!(got.len(), self.rows * self.width);
        let mut worst = 0f64;
        for (i, &got) in got.iter().enumerate() {
            let (row, column) = (i / self.width, i % self.width);
            let input = |column: usize| {
                let bias = if self.biased { f64::from(bias[column]) } else { 0.0 };
                f64::from(x[row * columns + column]) + bias
            };
            let factor = if self.gated { input(self.width + column) } else { 1.0 };
            let want = defined(self.activation, input(column)) * factor;
            let size = 1.0 + input(column).abs() * factor.abs();
            let error = ((f64::from(got) - want).abs() - self.element.unit() * want.abs() - 3e-8) / size;
            let what = format!("{:?} in {:?}, width {}", self.activation, self.element, self.width);
            assert!(error <= TOLERANCE, "{what}, row {row}, column {column}: {got}, not {want}");
            worst = worst.max(error);
        }
        worst
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn every_activation_and_gate_equals_its_definition() {
    for activation in ACTIVATIONS {
        let emulator = Emulator::new(&cuda::activation(activation), "activation");
        let mut worst = 0f64;
        for element in Element::ALL {
            for width in [1, 5, 8, 50, 64, 100, 768, 5120] {
                for (skipped, biased) in [(0, true), (0, false), (1, true), (8, true)] {
                    for gated in [false, true] {
                        let rows = if width > 1000 { 2 } else { 5 };
                        let case = Case { element, activation, gated, rows, width, biased, skipped };
                        worst = worst.max(case.check(&emulator));
                    }
                }
            }
        }
        println!("{activation:?}: largest error {worst:e} beside the rounding of the result");
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn what_is_not_finite_stays_so_and_in_its_place() {
    for activation in ACTIVATIONS {
        let emulator = Emulator::new(&cuda::activation(activation), "activation");
        for element in Element::ALL {
            let case = Case { element, activation, gated: false, rows: 2, width: 40, biased: false, skipped: 0 };
            let mut x = noise(80, 5);
            (x[3], x[44]) = (f32::NAN, f32::INFINITY);
            let got = case.run(&emulator, &x, &[0.0; 40]);
            assert!(got[3].is_nan() && !got[44].is_finite(), "{activation:?} {element:?}: {} {}", got[3], got[44]);
            let others = got.iter().enumerate().filter(|(i, _)| ![3, 44].contains(i));
            assert!(others.into_iter().all(|(_, x)| x.is_finite()), "{activation:?} {element:?}");
        }
    }
}
