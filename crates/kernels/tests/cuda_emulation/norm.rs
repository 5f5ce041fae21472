//! Norms of rows, compared with the definition in f64.

use crate::elements::Element;
use crate::emulator::{Arguments, Emulator};
use crate::noise;
use kernels::cuda;
use kernels::norm::NormKind;

/// Beside the rounding of the result: sums in f32 of up to several hundred numbers of size 1 in a thread, joined in ten
/// steps, and two approximations of two units in the last place.
const TOLERANCE: f64 = 1e-5;
const EPS: f32 = 1e-5;

struct Case {
    kind: NormKind,
    from: Element,
    to: Element,
    rows: usize,
    width: usize,
    segments: usize,
    /// Elements of a row after its segments.
    gap: usize,
    skipped: usize,
    in_place: bool,
    biased: bool,
}

impl Case {
    fn stride(&self) -> usize {
        self.width * self.segments + self.gap
    }

    fn run(&self, emulator: &Emulator, x: &[f32], weight: &[f32], bias: &[f32]) -> Vec<f32> {
        let (lanes, per_block) = cuda::norm_blocks(self.width);
        let arguments = Arguments::new()
            .number(self.from as usize)
            .number(self.to as usize)
            .number(lanes)
            .number(per_block)
            .number(self.rows)
            .number(self.width)
            .number(self.segments)
            .number(self.stride())
            .number(usize::from(self.in_place))
            .number(usize::from(self.biased))
            .number(self.skipped)
            .floats(&[EPS])
            .bytes(self.from.bytes(&[vec![0.0; self.skipped], x.to_vec()].concat()))
            .floats(weight)
            .floats(bias);
        emulator.run(arguments)
    }

    /// Checks all elements; gives the largest error beside that of rounding.
    fn check(&self, emulator: &Emulator) -> f64 {
        // Means far from 0, and rows of one value, whose variance is 0.
        let offset = |row: usize| if row % 3 == 1 { 50.0 } else { 1.0 };
        let scale = |row: usize| if row % 3 == 2 { 0.0 } else { 2.0 };
        let count = self.rows * self.stride();
        let x: Vec<f32> = noise(count, 3)
            .iter()
            .enumerate()
            .map(|(i, x)| (i / self.stride(), x))
            .map(|(row, x)| self.from.rounded(offset(row) + scale(row) * x))
            .collect();
        let (weight, bias) = (noise(self.width, 4), noise(self.width, 5));
        let got = self.run(emulator, &x, &weight, &bias);
        assert_eq!(got.len(), count);
        let mut worst = 0f64;
        for (i, &got) in got.iter().enumerate() {
            let (row, column) = (i / self.stride(), i % self.stride());
            if column >= self.width * self.segments {
                let untouched = if self.in_place { x[i] } else { self.to.rounded(7.0) };
                assert_eq!(got, untouched, "{} columns of {}", column, self.width);
                continue;
            }
            let first = row * self.stride() + column / self.width * self.width;
            let want = defined(self.kind, &x[first..first + self.width], column % self.width)
                * f64::from(weight[column % self.width])
                + if self.biased { f64::from(bias[column % self.width]) } else { 0.0 };
            let error = (f64::from(got) - want).abs() - self.to.unit() * want.abs();
            // The mean of a row far from 0 is as exact as its elements, in units of their deviation.
            assert!(
                error <= TOLERANCE * f64::from(offset(row)),
                "{:?} from {:?} to {:?}, width {}, row {row}, column {column}: {got}, not {want}",
                self.kind,
                self.from,
                self.to,
                self.width
            );
            worst = worst.max(error);
        }
        worst
    }
}

/// One element of the norm without weight and bias.
fn defined(kind: NormKind, row: &[f32], column: usize) -> f64 {
    let mean = |f: &dyn Fn(f64) -> f64| row.iter().map(|&x| f(x.into())).sum::<f64>() / row.len() as f64;
    let centre = if kind == NormKind::Layer { mean(&|x| x) } else { 0.0 };
    let variance = mean(&|x| (x - centre).powi(2));
    (f64::from(row[column]) - centre) / (variance + f64::from(EPS)).sqrt()
}

fn types() -> [(Element, Element); 5] {
    let halves = [Element::F16, Element::Bf16];
    [
        (Element::F32, Element::F32),
        (Element::F32, halves[0]),
        (Element::F32, halves[1]),
        (halves[0], halves[0]),
        (halves[1], halves[1]),
    ]
}

#[test]
#[ignore = "needs a C++ compiler"]
fn rows_of_every_width_and_alignment_equal_the_definition() {
    for kind in [NormKind::Layer, NormKind::Rms] {
        let emulator = Emulator::new(&cuda::norm(kind), "norm");
        let mut worst = 0f64;
        for (from, to) in types() {
            for width in [1, 5, 8, 24, 50, 64, 96, 100, 768, 1000, 4096, 16_384, 20_004] {
                for &skipped in if width > 4096 { &[0][..] } else { &[0, 1, 8] } {
                    let rows = if width > 4096 { 2 } else { 4 };
                    let biased = kind == NormKind::Layer && skipped != 1;
                    let case =
                        Case { kind, from, to, rows, width, segments: 1, gap: 0, skipped, in_place: false, biased };
                    worst = worst.max(case.check(&emulator));
                }
            }
        }
        println!("{kind:?}: largest error {worst:e} beside the rounding of the result");
    }
}

/// The heads of queries and keys.
#[test]
#[ignore = "needs a C++ compiler"]
fn segments_of_rows_are_normalised_in_place_and_the_rest_is_left() {
    let kind = NormKind::Rms;
    let emulator = Emulator::new(&cuda::norm(kind), "norm");
    for element in Element::ALL {
        for (width, segments, gap) in [(64, 3, 64), (24, 5, 7), (128, 1, 0), (768, 2, 768)] {
            let case = Case {
                kind,
                from: element,
                to: element,
                rows: 9,
                width,
                segments,
                gap,
                skipped: 0,
                in_place: true,
                biased: false,
            };
            case.check(&emulator);
        }
    }
}

#[test]
#[ignore = "needs a C++ compiler"]
fn what_is_not_finite_stays_in_its_row() {
    for kind in [NormKind::Layer, NormKind::Rms] {
        let emulator = Emulator::new(&cuda::norm(kind), "norm");
        for width in [40, 900] {
            let (from, to) = (Element::F32, Element::Bf16);
            let case = Case {
                kind,
                from,
                to,
                rows: 5,
                width,
                segments: 1,
                gap: 0,
                skipped: 0,
                in_place: false,
                biased: false,
            };
            let mut x = noise(5 * width, 6);
            x[width + 3] = f32::NAN;
            x[3 * width + width / 2] = f32::INFINITY;
            let got = case.run(&emulator, &x, &vec![1.0; width], &vec![0.0; width]);
            for (row, got) in got.chunks_exact(width).enumerate() {
                match row {
                    1 => assert!(got.iter().all(|x| x.is_nan()), "{kind:?}"),
                    3 => assert!(got[width / 2].is_nan(), "{kind:?}"),
                    _ => assert!(got.iter().all(|x| x.is_finite()), "{kind:?}"),
                }
            }
        }
    }
}
