//! Weights in blocks against those of the `gguf` package, and their products against those of weights in f32.

use super::*;
use crate::activation::Activation;
use crate::packed::matrix::CHAIN;
use crate::packed::tests::{defined, noise, same};
use crate::packed::{Isa, Matrix, Packed, Products};
use crate::simd::{Level, at_each_level};
use strum::VariantArray;

/// The bytes of the blocks and of the weights.
macro_rules! fixture {
    ($name:literal) => {{
        let blocks: &[u8] = include_bytes!(concat!("../../../tests/fixtures/", $name, ".blocks"));
        let weights: &[u8] = include_bytes!(concat!("../../../tests/fixtures/", $name, ".weights"));
        (blocks, weights)
    }};
}
/// Blocks, and the weights that `tests/fixtures/make_blocks.py` computed from them.
fn reference(format: BlockFormat) -> (Vec<u8>, Vec<f32>) {
    let (blocks, weights) = match format {
        BlockFormat::Q8_0 => fixture!("Q8_0"),
        BlockFormat::Q4K => fixture!("Q4_K"),
        BlockFormat::Q5K => fixture!("Q5_K"),
        BlockFormat::Q6K => fixture!("Q6_K"),
    };
    (blocks.to_vec(), weights.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn each_format(check: impl Fn(BlockFormat)) {
    BlockFormat::VARIANTS.iter().copied().for_each(check);
}

/// Weights `[n, k]` of random blocks with scales about `1e-3`, of either sign.
fn random_blocks(format: BlockFormat, [n, k]: [usize; 2], seed: u64) -> Vec<u8> {
    let count = n * k / format.weights();
    let mut bytes: Vec<u8> = noise(count * format.bytes(), seed).iter().map(|x| (x * 128.0) as i8 as u8).collect();
    for block in bytes.chunks_exact_mut(format.bytes()) {
        for &at in format.scales() {
            block[at + 1] = block[at + 1] & 0x83 | 0x14;
        }
    }
    bytes
}

/// The instructions of this machine, slowest first.
fn isas() -> impl Iterator<Item = Isa> {
    Isa::VARIANTS.iter().copied().filter(|isa| isa.runs_blocks())
}

fn fastest() -> Isa {
    Isa::best_for_blocks(Level::Amx).unwrap_or(Isa::Scalar)
}

fn rows(bytes: &[u8], n: usize) -> Vec<&[u8]> {
    bytes.chunks_exact(bytes.len() / n).collect()
}

/// The weights `[n, k]` of packed blocks.
fn weights(packed: &Packed) -> Vec<f32> {
    let [n, k] = packed.shape();
    let mut weights = vec![0.0; n * k];
    weights.chunks_exact_mut(k).enumerate().for_each(|(row, out)| packed.copy_row(out, row));
    weights
}

/// Shapes `[n, k]` of full, nearly full and nearly empty panels, and of chains of each length.
fn shapes(format: BlockFormat) -> [[usize; 2]; 5] {
    let block = format.weights();
    [[1, block], [48, 2 * block], [49, 3 * block], [95, 512], [130, 512 + block]]
}

#[test]
fn weights_have_the_bits_of_the_gguf_package_at_every_level() {
    each_format(|format| {
        let (bytes, expected) = reference(format);
        for columns in [format.weights(), 512, 2048] {
            let rows = rows(&bytes, expected.len() / columns);
            let packed = Packed::of_blocks(&rows, columns, format, Isa::Scalar).unwrap();
            for (level, weights) in at_each_level(|| weights(&packed)) {
                assert!(same(&weights, &expected), "{format:?} in rows of {columns} at {level:?}");
            }
        }
    });
}

/// The products of blocks, and those of the same weights that were packed in f32.
#[test]
fn products_have_the_bits_of_those_of_weights_in_f32_at_every_level() {
    each_format(|format| {
        for [n, k] in shapes(format) {
            let bytes = random_blocks(format, [n, k], 1);
            for isa in isas() {
                let packed = Packed::of_blocks(&rows(&bytes, n), k, format, isa).unwrap();
                let w = weights(&packed);
                let plain = Packed::new(Matrix::F32(&w), [n, k], Products::F32, Isa::Scalar);
                for m in [1, 2, 7, 8, 9, 65] {
                    let (x, start, bias) = (noise(m * k, 2), noise(m * n, 3), noise(n, 4));
                    let products = |packed: &Packed| {
                        let mut onto = start.clone();
                        packed.multiply_onto(&mut onto, &x, Some(&bias));
                        [packed.multiply(&x, Some(&bias), Some(Activation::Silu)), onto].concat()
                    };
                    let expected = products(&plain);
                    for (level, actual) in at_each_level(|| products(&packed)) {
                        assert!(same(&actual, &expected), "{format:?} {:?} on {isa:?} at {level:?}", [m, n, k]);
                    }
                    let onto = packed.multiply(&x, None, None);
                    assert!(same(&onto, &defined(&vec![0.0; m * n], &x, &w, [m, n, k])), "{format:?} on {isa:?}");
                }
            }
        }
    });
}

#[test]
fn a_row_has_the_same_bits_among_any_number_of_rows_and_threads() {
    const ROWS: usize = 600;
    each_format(|format| {
        let [n, k] = [100, 1024 + format.weights()];
        let (bytes, x) = (random_blocks(format, [n, k], 5), noise(ROWS * k, 6));
        let packed = Packed::of_blocks(&rows(&bytes, n), k, format, fastest()).unwrap();
        let all = packed.multiply(&x, None, None);
        for threads in [1, 2, 7] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for (from, count) in [(0, 1), (3, 2), (9, 5), (17, 65), (100, 257), (0, ROWS)] {
                let some = pool.install(|| packed.multiply(&x[from * k..(from + count) * k], None, None));
                assert!(same(&some, &all[from * n..(from + count) * n]), "{format:?}, rows {from}+{count}, {threads}");
            }
        }
    });
}

#[test]
fn some_panels_give_what_all_of_them_give_there() {
    let m = 300;
    each_format(|format| {
        let [n, k] = [200, 512 + format.weights()];
        let (bytes, x, bias) = (random_blocks(format, [n, k], 7), noise(m * k, 8), noise(n, 9));
        let packed = Packed::of_blocks(&rows(&bytes, n), k, format, fastest()).unwrap();
        let (all, step, mut some) = (packed.multiply(&x, Some(&bias), None), packed.rows_in_cache(), Vec::new());
        for (first, panels) in (0..m).step_by(step).flat_map(|first| [0..1, 1..3, 3..5, 0..5].map(|p| (first, p))) {
            let columns = packed.columns(panels.clone());
            let rows = first..(first + step).min(m);
            packed.multiply_panels(&mut some, &packed.rows(&x), rows, panels.clone(), Some(&bias));
            for (i, row) in some.chunks(columns.len()).enumerate() {
                assert!(
                    same(row, &all[(first + i) * n..][columns.clone()]),
                    "{format:?}: {panels:?}, row {}",
                    first + i
                );
            }
        }
    });
}

/// Against f64 products of the reference's weights. In f32, a sum of terms t over one chain after the other is off by less
/// than `(c + k / c + 1) 2^-24` of the sum of all |t|, for chains of c steps: one rounding of each fused multiply-add that a
/// term passes through, and one of each addition of a chain.
#[test]
fn products_are_within_the_bound_of_sums_in_f32() {
    each_format(|format| {
        for [n, k] in shapes(format) {
            let (m, bytes) = (5, random_blocks(format, [n, k], 10));
            for isa in isas() {
                let packed = Packed::of_blocks(&rows(&bytes, n), k, format, isa).unwrap();
                let (x, w) = (noise(m * k, 11), weights(&packed));
                let out = packed.multiply(&x, None, None);
                for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
                    let terms = (0..k).map(|q| f64::from(x[i * k + q]) * f64::from(w[j * k + q]));
                    let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                    let roundings = CHAIN.min(k) + k.div_ceil(CHAIN) + 1;
                    let bound = roundings as f64 * f64::from(f32::EPSILON) / 2.0 * size;
                    let error = (f64::from(out[i * n + j]) - sum).abs();
                    assert!(error <= bound, "{format:?} {:?} on {isa:?}: off by {error}, not {bound}", [m, n, k]);
                }
            }
        }
    });
}

#[test]
fn rows_are_packed_in_the_order_that_they_are_given_in() {
    each_format(|format| {
        let [n, k] = [60, format.weights()];
        let bytes = random_blocks(format, [n, k], 12);
        let packed = |rows: &[&[u8]]| Packed::of_blocks(rows, k, format, Isa::Scalar).unwrap();
        let reversed: Vec<&[u8]> = rows(&bytes, n).into_iter().rev().collect();
        let expected: Vec<f32> = weights(&packed(&rows(&bytes, n))).rchunks(k).flatten().copied().collect();
        assert!(same(&weights(&packed(&reversed)), &expected), "{format:?}");
    });
}

#[test]
fn packed_bytes_is_the_size_of_packed_blocks() {
    each_format(|format| {
        for shape @ [n, k] in shapes(format) {
            let blocks = Blocks::new(&rows(&random_blocks(format, shape, 13), n), k, format).unwrap();
            assert_eq!(size_of_val(&blocks.lines[..]), format.packed_bytes(shape), "{format:?} {shape:?}");
        }
        assert_eq!(format.packed_bytes([usize::MAX; 2]), usize::MAX);
    });
    // No more than the blocks themselves where the panels are full.
    let sizes = [BlockFormat::Q8_0, BlockFormat::Q4K, BlockFormat::Q5K, BlockFormat::Q6K]
        .map(|format| format.packed_bytes([48, 512]));
    assert_eq!(sizes, [48 * 16 * 34, 48 * 2 * 144, 48 * 2 * 176, 48 * 2 * 210]);
}

#[test]
fn blocks_that_are_no_weights_are_refused_by_their_fault() {
    let refused = |rows: &[&[u8]], k, format| {
        Packed::of_blocks(rows, k, format, Isa::Scalar).err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert_eq!(
        refused(&[&[0; 144]], 384, BlockFormat::Q4K),
        "384 columns are not a whole number of Q4_K blocks of 256 weights"
    );
    assert_eq!(
        refused(&[&[0; 68], &[0; 67]], 64, BlockFormat::Q8_0),
        "row 1 has 67 bytes of Q8_0 blocks instead of 68"
    );
    for (format, at) in
        BlockFormat::VARIANTS.iter().flat_map(|&format| format.scales().iter().map(move |&at| (format, at)))
    {
        for half in [f16::INFINITY, f16::NEG_INFINITY, f16::NAN] {
            let (good, mut bad) = (vec![0; 2 * format.bytes()], vec![0; 2 * format.bytes()]);
            bad[format.bytes() + at..][..2].copy_from_slice(&half.to_le_bytes());
            let columns = format.weights();
            let expected = format!("a scale in row 1 from column {columns} on is infinite or not a number");
            assert_eq!(refused(&[&good, &bad], 2 * columns, format), expected, "{format:?}, {half}");
        }
    }
    let huge = Packed::of_blocks(&[&[]], usize::MAX - 255, BlockFormat::Q4K, Isa::Scalar).err();
    assert!(matches!(huge, Some(BlockError::Length { .. })), "{huge:?}");
}

#[test]
fn no_rows_and_no_columns_are_a_matrix_too() {
    each_format(|format| {
        let empty = Packed::of_blocks(&[], format.weights(), format, Isa::Scalar).unwrap();
        assert!(empty.multiply(&vec![1.0; format.weights()], None, None).is_empty());
        let narrow = Packed::of_blocks(&[&[], &[]], 0, format, Isa::Scalar).unwrap();
        assert!(narrow.multiply(&[], None, None).is_empty());
    });
}

#[test]
fn the_fastest_instructions_of_each_level_multiply_blocks() {
    assert_eq!(Isa::best_for_blocks(Level::Scalar), None);
    for (level, isa) in [(Level::Avx2, Isa::Avx2), (Level::Avx512, Isa::Avx512), (Level::Amx, Isa::Avx512)] {
        assert!(!isa.runs_blocks() || Isa::best_for_blocks(level) == Some(isa), "{level:?}");
    }
    assert_eq!(isas().last(), Some(fastest()));
}
