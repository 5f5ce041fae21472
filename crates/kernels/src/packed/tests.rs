//! Every kernel against the definition, and the bits of a row alone against those it has among others.

use super::matrix::{CHAIN, blocks};
use super::*;
use crate::activation::Activation;
use crate::activation::apply;
use crate::simd::{Level, at_each_level};
use half::{bf16, f16};
use strum::VariantArray;

pub(super) fn noise(len: usize, mut seed: u64) -> Vec<f32> {
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Tiles with every number of rows; full, nearly full and nearly empty panels; odd k; chains of more than one block.
const SHAPES: [[usize; 3]; 9] = [
    [1, 48, 64],
    [2, 1, 1],
    [3, 47, 33],
    [4, 49, 2],
    [5, 96, 513],
    [6, 100, 1025],
    [7, 17, 512],
    [12, 65, 1536],
    [40, 200, 31],
];

pub(super) fn same(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// The definition in vectors, and the fastest instructions of this machine that have its bits.
fn vectors(products: Products) -> Vec<Isa> {
    Isa::groups(products).remove(0)
}

/// The fastest instructions of this machine, in vectors and of tiles.
fn machines(products: Products) -> Vec<Isa> {
    Isa::groups(products).into_iter().map(|isas| *isas.last().unwrap()).collect()
}

/// `x w^T`, added to `start` if `accumulate`.
fn multiplied(packed: &Packed, start: &[f32], x: &[f32], accumulate: bool) -> Vec<f32> {
    if !accumulate {
        return packed.multiply(x, None, None);
    }
    let mut out = start.to_vec();
    packed.multiply_onto(&mut out, x, None);
    out
}

/// The weights in each type, and the f32 values that they represent.
pub(super) fn in_each_type(w: &[f32], check: impl Fn(&str, Matrix, &[f32])) {
    check("f32", Matrix::F32(w), w);
    let halves: Vec<f16> = w.iter().map(|&w| f16::from_f32(w)).collect();
    check("f16", Matrix::F16(&halves), &halves.iter().map(|w| w.to_f32()).collect::<Vec<_>>());
    let halves: Vec<bf16> = w.iter().map(|&w| bf16::from_f32(w)).collect();
    check("bf16", Matrix::Bf16(&halves), &halves.iter().map(|w| w.to_f32()).collect::<Vec<_>>());
}

/// The chains of fused multiply-adds, over plain slices.
pub(super) fn defined(start: &[f32], x: &[f32], w: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let mut out = start.to_vec();
    for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
        for chain in blocks(k, CHAIN) {
            out[i * n + j] += chain.fold(0f32, |sum, q| x[i * k + q].mul_add(w[j * k + q], sum));
        }
    }
    out
}

#[test]
fn f32_products_have_the_bits_of_their_definition_on_every_path_and_in_every_type() {
    for shape @ [m, n, k] in SHAPES {
        let (x, start) = (noise(m * k, 1), noise(m * n, 3));
        in_each_type(&noise(n * k, 2), |element, matrix, w| {
            for isa in vectors(Products::F32) {
                let packed = Packed::new(matrix, [n, k], Products::F32, isa);
                let [zero, onto] = [false, true].map(|accumulate| multiplied(&packed, &start, &x, accumulate));
                assert!(same(&onto, &defined(&start, &x, w, shape)), "{shape:?} {element} {isa:?}");
                assert!(same(&zero, &defined(&vec![0.0; m * n], &x, w, shape)), "{shape:?} {element} {isa:?}");
            }
        });
    }
}

#[test]
fn a_row_has_the_same_bits_among_any_number_of_rows_and_threads() {
    const ROWS: usize = 210;
    for products in Products::VARIANTS.iter().copied() {
        for [n, k] in [[3, 48], [48, 48], [65, 193], [130, 2048]] {
            let (x, w) = (noise(ROWS * k, 4), noise(n * k, 5));
            let w: Vec<bf16> = w.into_iter().map(bf16::from_f32).collect();
            for isa in machines(products) {
                let packed = Packed::new(Matrix::Bf16(&w), [n, k], products, isa);
                let start = noise(ROWS * n, 6);
                let all = multiplied(&packed, &start, &x, true);
                for threads in [1, 2, 7] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    for (from, rows) in [(0, 1), (3, 1), (17, 2), (20, 3), (9, 5), (40, 31), (61, 65), (100, 110)] {
                        let (start, x) = (&start[from * n..(from + rows) * n], &x[from * k..(from + rows) * k]);
                        let some = pool.install(|| multiplied(&packed, start, x, true));
                        let expected = &all[from * n..(from + rows) * n];
                        let what = format!("{products:?} on {isa:?}, n {n}, k {k}");
                        assert!(same(&some, expected), "{what}, rows {from}+{rows}, {threads} threads");
                    }
                }
            }
        }
    }
}

#[test]
fn some_panels_give_what_all_of_them_give_there() {
    let [m, n, k] = [300, 200, 37];
    let (x, w) = (noise(m * k, 7), noise(n * k, 8));
    for products in [Products::F32] {
        for isa in machines(products) {
            let packed = Packed::new(Matrix::F32(&w), [n, k], products, isa);
            let (bias, step) = (noise(n, 9), packed.rows_in_cache());
            for bias in [None, Some(&bias[..])] {
                let all = packed.multiply(&x, bias, None);
                for panels in [0..1, 1..3, 3..5, 4..5, 0..5] {
                    let columns = packed.columns(panels.clone());
                    let mut some = Vec::new();
                    for first in (0..m).step_by(step) {
                        let rows = first..(first + step).min(m);
                        packed.multiply_panels(&mut some, &packed.rows(&x), rows, panels.clone(), bias);
                        for (i, row) in some.chunks(columns.len()).enumerate() {
                            let expected = &all[(first + i) * n..][columns.clone()];
                            assert!(same(row, expected), "{isa:?}: panels {panels:?}, row {}", first + i);
                        }
                    }
                }
            }
        }
    }
}

/// A bias comes before the products, and the activation is that of the results, whatever the parts.
#[test]
fn biases_and_activations_are_those_of_whole_results() {
    let [m, n, k] = [301, 200, 1100];
    let (x, w, bias, start) = (noise(m * k, 16), noise(n * k, 17), noise(n, 18), noise(m * n, 19));
    for products in [Products::F32] {
        for isa in machines(products) {
            let packed = Packed::new(Matrix::F32(&w), [n, k], products, isa);
            let plus_bias =
                |out: &[f32]| -> Vec<f32> { out.iter().zip(bias.iter().cycle()).map(|(a, b)| a + b).collect() };
            let mut expected = plus_bias(&vec![0.0; m * n]);
            packed.multiply_onto(&mut expected, &x, None);
            assert!(same(&packed.multiply(&x, Some(&bias), None), &expected), "{isa:?}: a bias");
            for activation in [Activation::Gelu, Activation::GeluTanh, Activation::Relu, Activation::Silu] {
                let mut activated = expected.clone();
                apply(activation, &mut activated);
                assert!(
                    same(&packed.multiply(&x, Some(&bias), Some(activation)), &activated),
                    "{isa:?}: {activation:?}"
                );
            }
            let mut onto = start.clone();
            packed.multiply_onto(&mut onto, &x, Some(&bias));
            let mut expected = plus_bias(&start);
            packed.multiply_onto(&mut expected, &x, None);
            assert!(same(&onto, &expected), "{isa:?}: a bias and what is there");
        }
    }
}

/// As the manuals define the instruction, on any processor that has it; also if products and sums are subnormal.
#[test]
fn bf16_products_have_the_same_bits_on_every_path() {
    for [m, n, k] in SHAPES {
        for scale in [1.0, 2f32.powi(-64)] {
            let x: Vec<f32> = noise(m * k, 12).iter().map(|x| x * scale).collect();
            let w: Vec<bf16> = noise(n * k, 13).iter().map(|w| bf16::from_f32(w * scale)).collect();
            let [native, defined] = [*vectors(Products::Bf16).last().unwrap(), Isa::Scalar]
                .map(|isa| Packed::new(Matrix::Bf16(&w), [n, k], Products::Bf16, isa).multiply(&x, None, None));
            assert!(same(&native, &defined), "{:?}, scale {scale}", [m, n, k]);
        }
    }
}

/// Sums about the smallest normal number: products that are not exact in f32, and results that are subnormal after they are
/// rounded but not on the grid of subnormal numbers. The second of a pair is added first.
#[test]
fn bf16_products_have_the_same_bits_where_results_are_barely_normal() {
    let power = |exponent: i32| 2f32.powi(exponent);
    let cases: [[(f32, f32); 4]; 4] = [
        [(power(-75), power(-75)), (power(-63), power(-86)), (0.0, 0.0), (1.0, power(-126))],
        [(1.25, power(-75) * power(-74)), (1.0, power(-125)), (0.0, 0.0), (0.0, 0.0)],
        [(-power(-75), power(-75)), (1.0, power(-126)), (0.0, 0.0), (0.0, 0.0)],
        [(0.0, 0.0), (0.0, 0.0), (-power(-76), power(-75)), (1.0, power(-126))],
    ];
    for terms in cases {
        let (x, w): (Vec<f32>, Vec<bf16>) = terms.iter().map(|&(x, w)| (x, bf16::from_f32(w))).unzip();
        let bits = |isa| {
            let packed = Packed::new(Matrix::Bf16(&w), [1, w.len()], Products::Bf16, isa);
            packed.multiply(&x, None, None)[0].to_bits()
        };
        let all: Vec<u32> = vectors(Products::Bf16).into_iter().map(bits).collect();
        assert!(all.iter().all(|bits| *bits == all[0]), "{terms:?}: {all:x?}");
    }
}

/// Against f64 sums of the same rounded numbers. Chains of 512 sums in f32 lose about 1e-6 of the magnitude of their
/// terms.
#[test]
fn bf16_products_are_those_of_rounded_numbers_on_every_path() {
    let near = |x: f32| f64::from(bf16::from_f32(x).to_f32());
    for shape @ [m, n, k] in SHAPES {
        let (x, w) = (noise(m * k, 9), noise(n * k, 10));
        let rounded: Vec<bf16> = w.iter().map(|&w| bf16::from_f32(w)).collect();
        for isa in Isa::available(Products::Bf16) {
            let packed = Packed::new(Matrix::Bf16(&rounded), [n, k], Products::Bf16, isa);
            let out = multiplied(&packed, &vec![1.0; m * n], &x, true);
            for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                let terms = (0..k).map(|q| near(x[i * k + q]) * near(w[j * k + q]));
                let (want, size) = terms.fold((1.0, 1.0), |(sum, size), term| (sum + term, size + term.abs()));
                let error = (f64::from(out[i * n + j]) - want).abs();
                assert!(error <= 1e-6 * size, "{shape:?} {isa:?}: off by {error} of {size}");
            }
        }
    }
}

#[test]
fn packing_pays_from_avx512_on_where_the_machine_has_it() {
    for products in [Products::F32, Products::Bf16] {
        assert_eq!([Level::Scalar, Level::Avx2].map(|level| Isa::best(products, level)), [None; 2]);
        let vectors = Isa::Avx512.runs(products).then_some(Isa::Avx512);
        assert_eq!(Isa::best(products, Level::Avx512), vectors);
        assert_eq!(Isa::best(products, Level::Amx), Isa::Amx.runs(products).then_some(Isa::Amx).or(vectors));
    }
}

/// Rows of every length; NaN keeps all its bits.
#[test]
fn activations_are_rounded_to_the_same_bits_at_every_level() {
    for k in 1..71 {
        let w = vec![bf16::ONE; 2 * k];
        let packed = Packed::new(Matrix::Bf16(&w), [2, k], Products::Bf16, Isa::Scalar);
        let ties = [1.0 + 1.0 / 256.0, 1.0 + 3.0 / 256.0];
        let special = [f32::NAN, f32::INFINITY, -0.0, 1e-40, f32::MAX, f32::from_bits(0xff80_0001), ties[0], ties[1]];
        let x: Vec<f32> =
            noise(3 * k, 14).into_iter().zip(special.into_iter().cycle()).flat_map(<[f32; 2]>::from).collect();
        let rounded = || match packed.rows(&x).values {
            super::rows::Values::Pairs(pairs) => pairs,
            _ => panic!("bf16 products need bf16 rows"),
        };
        let results = at_each_level(rounded);
        assert!(results.iter().all(|(_, pairs)| *pairs == results[0].1), "rows of {k}");
        let value = |row: usize, q: usize| (results[0].1[row * k.div_ceil(2) + q / 2] >> (16 * (q % 2))) as u16;
        for (index, &x) in x.iter().enumerate() {
            assert_eq!(value(index / k, index % k), bf16::from_f32(x).to_bits(), "{x} in a row of {k}");
        }
    }
}

/// Ties, overflow to infinity, subnormal numbers and NaN.
#[test]
fn rounding_is_that_of_half() {
    let special = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-40,
        1.0 + 1.0 / 256.0,
        1.0 + 3.0 / 256.0,
    ];
    for x in noise(10_000, 11).into_iter().chain(special) {
        assert_eq!(super::rows::rounded(x), u32::from(bf16::from_f32(x).to_bits()), "{x}");
    }
    assert!(bf16::from_bits(super::rows::rounded(f32::from_bits(0x7f80_0001)) as u16).is_nan());
}

#[test]
fn nothing_hides_a_nan_or_an_infinity() {
    let w = vec![bf16::ONE; 50 * 3];
    for products in [Products::F32, Products::Bf16] {
        let packed = Packed::new(Matrix::Bf16(&w), [50, 3], products, *vectors(products).last().unwrap());
        let out = packed.multiply(&[f32::NAN, 0.0, 0.0, f32::INFINITY, 0.0, 0.0], None, None);
        assert!(out[..50].iter().all(|x| x.is_nan()) && out[50..].iter().all(|&x| x == f32::INFINITY), "{products:?}");
    }
}

#[test]
fn packed_bytes_is_the_size_of_packed_weights() {
    for [n, k] in [[1, 1], [48, 64], [49, 65], [200, 31]] {
        in_each_type(&noise(n * k, 15), |name, matrix, _| {
            for products in [Products::F32] {
                for isa in Isa::available(products) {
                    let packed = Packed::new(matrix, [n, k], products, isa);
                    let size = (0..packed.panels()).map(|panel| size_of_val(packed.panel(panel))).sum::<usize>();
                    let promised = packed_bytes([n, k], matrix.element(), products, isa);
                    assert_eq!(size, promised, "{name}, {n} x {k}, {products:?} on {isa:?}");
                }
            }
        });
    }
}
