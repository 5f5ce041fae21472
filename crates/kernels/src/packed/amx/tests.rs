//! Products against their definition over plain slices, on every machine that runs here.

use super::*;
use crate::activation::Activation;
use crate::activation::apply;
use crate::packed::flushed::{flushed, fused};
use crate::packed::matrix::{Element, Matrix, PackedLine};
use crate::packed::pack::Packed;
use crate::packed::target::Target;
use crate::packed::terms::{Terms, split, widened};
use crate::packed::tests::{in_each_type, noise, same};
use crate::packed::tile_panels::{STEP, steps};
use crate::packed::{Isa, Products};
use crate::shared_mut::SharedMut;
use half::{bf16, f16};
use machine::{StripProduct, TileMachine};
use strum::VariantArray;

/// `tdpbf16ps` for one result, as the manual has it.
fn tdpbf16ps(sum: f32, x: &[u16], w: &[u16]) -> f32 {
    let mut parts = [0f32; 2];
    for (q, (&x, &w)) in x.iter().zip(w).enumerate() {
        parts[q % 2] = fused(widened(x), widened(w), parts[q % 2]);
    }
    flushed(flushed(sum) + flushed(parts[0] + parts[1]))
}

/// The terms of an activation, as `vcvtne2ps2bf16` rounds: subnormal numbers to zero, before and after.
fn converted(mut x: f32) -> [u16; 3] {
    std::array::from_fn(|_| {
        let term = bf16::from_f32(if x.is_subnormal() { 0f32.copysign(x) } else { x });
        x -= term.to_f32();
        term.to_bits()
    })
}

fn defined(x: &[f32], w: &[f32], terms: Terms) -> f32 {
    let value = |v: &[f32], q: usize| v.get(q).copied().unwrap_or(0.0);
    (0..steps(x.len())).fold(0.0, |sum, step| {
        let places = step * STEP..(step + 1) * STEP;
        let (x, w): (Vec<_>, Vec<_>) = places.map(|q| (converted(value(x, q)), split::<3>(value(w, q)))).unzip();
        terms.products().iter().fold(sum, |sum, &(i, j)| {
            let (x, w): (Vec<_>, Vec<_>) = x.iter().zip(&w).map(|(x, w)| (x[i], w[j])).unzip();
            tdpbf16ps(sum, &x, &w)
        })
    })
}

/// The conversion and the stores of the processor around emulated products: what a machine without tiles can check.
#[cfg(target_arch = "x86_64")]
struct WithoutTiles(Emulated);

#[cfg(target_arch = "x86_64")]
impl TileMachine for WithoutTiles {
    unsafe fn configured(rows: usize) -> Self {
        Self(unsafe { Emulated::configured(rows) })
    }

    fn configure(&mut self, rows: usize) {
        self.0.configure(rows);
    }

    unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: std::ops::Range<usize>, terms: usize) {
        unsafe { hardware::convert(lines, x, k, steps, terms) };
    }

    unsafe fn multiply(&mut self, terms: Terms, product: &StripProduct) {
        unsafe { self.0.multiply(terms, product) };
    }

    unsafe fn store(target: Target, sums: *const f32, rows: usize, columns: usize, stream: bool) {
        unsafe { hardware::store(target, sums, rows, columns, stream) };
    }
}

type Multiply = unsafe fn(&Packed, Target, &[f32], Option<Activation>);

/// Every machine that runs here.
fn machines() -> Vec<(&'static str, Multiply)> {
    let mut machines: Vec<(&str, Multiply)> = vec![("emulated", multiply::multiply::<Emulated>)];
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512bf16") {
            machines.push(("without tiles", multiply::multiply::<WithoutTiles>));
        }
        if Isa::Amx.runs(Products::F32) {
            machines.push(("hardware", multiply::multiply::<Tiles>));
        }
    }
    machines
}

/// Weights of each type and kind of products; each way to split is among them.
fn in_each_split(w: &[f32], [n, k]: [usize; 2], check: impl Fn(&Packed, &[f32])) {
    in_each_type(w, |_, matrix, values| {
        for products in Products::VARIANTS.iter().copied() {
            if products != Products::Bf16 || matrix.element() == Element::Bf16 {
                check(&Packed::new(matrix, [n, k], products, Isa::AmxEmulated), values);
            }
        }
    });
}

/// Operands that products are added to, and the activation of the results.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    accumulate: bool,
    bias: Option<&'a [f32]>,
    activation: Option<Activation>,
}

fn multiplied(run: Multiply, packed: &Packed, start: &[f32], x: &[f32], accumulate: bool) -> Vec<f32> {
    multiplied_around(run, packed, start, x, Around { accumulate, ..Around::default() })
}

fn multiplied_around(run: Multiply, packed: &Packed, start: &[f32], x: &[f32], around: Around) -> Vec<f32> {
    let Around { accumulate, bias, activation } = around;
    // Results are streamed only to whole lines of the cache.
    let mut lines = vec![PackedLine([0; 16]); start.len().div_ceil(16).max(1)];
    let out = unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast::<f32>(), start.len()) };
    out.copy_from_slice(start);
    let target = Target { out: SharedMut(out.as_mut_ptr()), stride: packed.n, accumulate, bias };
    unsafe { run(packed, target, x, activation) };
    out.to_vec()
}

/// Rows of one tile and two, whole and not; panels that are full, nearly full and nearly empty; k that ends within a step.
const SHAPES: [[usize; 3]; 10] = [
    [1, 48, 64],
    [2, 1, 1],
    [3, 47, 33],
    [5, 33, 513],
    [16, 32, 40],
    [17, 17, 96],
    [31, 65, 31],
    [33, 64, 32],
    [48, 31, 100],
    [140, 34, 65],
];

/// Also where numbers are so small that products, or terms, are subnormal.
#[test]
fn products_have_the_bits_of_their_definition() {
    for [m, n, k] in SHAPES {
        for [i, j] in [[0, 0], [-63, -63], [-118, 4], [4, -118]] {
            let [scale, w_scale] = [i, j].map(|power| 2f32.powi(power));
            let x: Vec<f32> = noise(m * k, 1).iter().map(|x| x * scale).collect();
            let w: Vec<f32> = noise(n * k, 2).iter().map(|w| w * w_scale).collect();
            let start: Vec<f32> = noise(m * n, 3).iter().map(|s| s * scale * w_scale).collect();
            in_each_split(&w, [n, k], |packed, w| {
                let row = |index: usize| (&x[index / n * k..][..k], &w[index % n * k..][..k]);
                let defined: Vec<f32> = (0..m * n).map(row).map(|(x, w)| defined(x, w, packed.terms())).collect();
                let sums: Vec<f32> = start.iter().zip(&defined).map(|(start, sum)| start + sum).collect();
                for (machine, run) in machines() {
                    let what = format!("{:?} by {:?}, 2^{i}, 2^{j}, {machine}", [m, n, k], packed.terms());
                    assert!(same(&multiplied(run, packed, &start, &x, false), &defined), "{what}");
                    assert!(same(&multiplied(run, packed, &start, &x, true), &sums), "{what}, added");
                }
            });
        }
    }
}

/// With a bias, which comes before the products; what is there comes before both.
#[test]
fn biases_and_activations_have_the_bits_of_their_definition() {
    for [m, n, k] in SHAPES.into_iter().chain([[260, 1040, 32]]) {
        let (x, w, bias, start) = (noise(m * k, 11), noise(n * k, 12), noise(n, 13), noise(m * n, 14));
        let packed = Packed::new(Matrix::F32(&w), [n, k], Products::F32, Isa::AmxEmulated);
        for (machine, run) in machines() {
            let sums = multiplied(run, &packed, &vec![0.0; m * n], &x, false);
            for accumulate in [false, true] {
                let before = |index: usize| if accumulate { start[index] + bias[index % n] } else { bias[index % n] };
                let with_bias: Vec<f32> = sums.iter().enumerate().map(|(index, sum)| before(index) + sum).collect();
                for activation in [None, Some(Activation::Relu)] {
                    let around = Around { accumulate, bias: Some(&bias), activation };
                    let mut expected = with_bias.clone();
                    if let Some(activation) = activation {
                        apply(activation, &mut expected);
                    }
                    let out = multiplied_around(run, &packed, &start, &x, around);
                    assert!(same(&out, &expected), "{:?}, {machine}, {activation:?}", [m, n, k]);
                }
            }
        }
    }
}

/// 2^-126 - 2^-150 is nearest to 2^-126 among subnormal numbers, but below it with 24 bits, so that the processor makes it zero.
#[test]
fn results_are_rounded_before_they_are_flushed() {
    let mut x = [0.0; 32];
    let mut w = [bf16::ZERO; 32];
    (x[0], w[0]) = (1.0, bf16::from_f32(2f32.powi(-126)));
    for (below, expected) in [(-75, 0.0), (-76, 2f32.powi(-126)), (-74, 0.0)] {
        (x[2], w[2]) = (-2f32.powi(-75), bf16::from_f32(2f32.powi(below)));
        let packed = Packed::new(Matrix::Bf16(&w), [1, 32], Products::Bf16, Isa::AmxEmulated);
        for (machine, run) in machines() {
            assert_eq!(multiplied(run, &packed, &[0.0], &x, false), [expected], "2^{below}, {machine}");
        }
    }
}

/// Rows in blocks that are converted by their threads; k in pieces and cuts; results that are streamed. Neither changes a
/// bit of what rows have alone.
#[test]
fn neither_blocks_nor_threads_change_a_bit() {
    for [m, n, k] in [[300, 33, 1060], [256, 1040, 32], [256, 33, 2080]] {
        let (x, w) = (noise(m * k, 4), noise(n * k, 5));
        let halves: Vec<bf16> = w.iter().copied().map(bf16::from_f32).collect();
        let (f32, bf16) = (Matrix::F32(&w), Matrix::Bf16(&halves));
        let mut kinds = vec![(bf16, Products::Bf16)];
        // Of three terms, k is in pieces already here; emulation takes its time.
        if k == 1060 {
            kinds.extend([(f32, Products::F32), (bf16, Products::F32)]);
        }
        for (matrix, products) in kinds {
            let packed = &Packed::new(matrix, [n, k], products, Isa::AmxEmulated);
            for (machine, run) in machines() {
                let start = noise(m * n, 6);
                let mut first: Option<Vec<f32>> = None;
                for threads in [1, 3] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    for accumulate in [false, threads == 1] {
                        let mut all = pool.install(|| multiplied(run, packed, &start, &x, accumulate));
                        if !accumulate {
                            all.iter_mut().zip(&start).for_each(|(sum, start)| *sum += start);
                        }
                        let first = first.get_or_insert_with(|| all.clone());
                        assert!(same(first, &all), "{machine}, {threads} threads, k {k}");
                    }
                }
                for (from, rows) in [(0, 1), (31, 2), (100, 40), (m - 1, 1)] {
                    let some =
                        multiplied(run, packed, &start[from * n..][..rows * n], &x[from * k..][..rows * k], true);
                    let first = first.as_ref().unwrap();
                    assert!(same(&some, &first[from * n..(from + rows) * n]), "{machine}, rows {from}+{rows}, k {k}");
                }
            }
        }
    }
}

/// An infinity becomes NaN where it is split, since nothing is left of it; never a finite number.
#[test]
fn nothing_hides_a_nan_or_an_infinity() {
    in_each_split(&[1.0; 50 * 3], [50, 3], |packed, _| {
        for (machine, run) in machines() {
            for infinite in [f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
                let x = [f32::NAN, 0.0, 0.0, infinite, 0.0, 0.0];
                let out = multiplied(run, packed, &[0.0; 100], &x, false);
                let what = format!("{:?} of {infinite}, {machine}", packed.terms());
                assert!(out[..50].iter().all(|x| x.is_nan()), "{what}");
                assert!(out[50..].iter().all(|x| !x.is_finite()), "{what}: {}", out[50]);
            }
        }
    });
    for value in [f32::NAN, f32::INFINITY] {
        in_each_split(&[value; 6], [2, 3], |packed, _| {
            for (machine, run) in machines() {
                let out = multiplied(run, packed, &[0.0; 2], &[1.0, 2.0, 3.0], false);
                assert!(out.iter().all(|x| !x.is_finite()), "{:?} of {value}, {machine}", packed.terms());
            }
        });
    }
}

/// bf16 ends at 3.39e38, f32 at 3.40e38.
#[test]
fn finite_weights_are_finite_terms() {
    for w in [f32::MAX, f32::MIN, 3.395e38] {
        let [a, b, c] = split::<3>(w).map(widened);
        assert!(a.is_finite() && a + (b + c) == w, "{w}: {a}, {b}, {c}");
        let packed = Packed::new(Matrix::F32(&[w]), [1, 1], Products::F32, Isa::AmxEmulated);
        let [out] = multiplied(multiply::multiply::<Emulated>, &packed, &[0.0], &[0.5], false)[..] else { panic!() };
        assert!((out / (0.5 * w) - 1.0).abs() < 1e-5, "{out}");
    }
}

/// f16 is exactly two terms, and f32 three.
#[test]
fn terms_lose_nothing() {
    for bits in 0..=u16::MAX {
        let x = f16::from_bits(bits).to_f32();
        let [a, b, _] = split::<3>(x).map(widened);
        assert!(!x.is_finite() || a + b == x, "{x}");
    }
    for x in noise(100_000, 7) {
        let [a, b, c] = split::<3>(x).map(widened);
        assert_eq!(a + (b + c), x);
    }
}

#[test]
fn weights_in_half_types_are_kept() {
    let [n, k] = [70, 45];
    in_each_split(&noise(n * k, 8), [n, k], |packed, w| {
        if !Packed::keeps_weights(packed.element, packed.isa) {
            return assert_eq!(packed.element, Element::F32);
        }
        let mut row = vec![0.0; k];
        for (index, w) in w.chunks(k).enumerate() {
            packed.copy_row(&mut row, index);
            assert!(same(&row, w), "row {index} by {:?}", packed.terms());
        }
    });
}

/// Relative to the norms of a row of activations and a row of weights, at worst: what three terms leave of a number is less
/// than the rounding of f32 sums.
#[test]
fn split_products_are_near_those_of_f32() {
    let [m, n, k] = [20, 60, 768];
    let (x, w) = (noise(m * k, 9), noise(n * k, 10));
    in_each_split(&w, [n, k], |packed, w| {
        let tolerance = match packed.products {
            Products::F32 => 1e-7,
            Products::Bf16 => return,
        };
        let out = multiplied(multiply::multiply::<Emulated>, packed, &vec![0.0; m * n], &x, false);
        for (index, out) in out.into_iter().enumerate() {
            let (x, w) = (&x[index / n * k..][..k], &w[index % n * k..][..k]);
            let exact: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
            let norm = |v: &[f32]| v.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt();
            let error = (f64::from(out) - exact).abs() / (norm(x) * norm(w));
            assert!(error < tolerance, "{:?}: {error:e}", packed.terms());
        }
    });
}
