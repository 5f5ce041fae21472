//! Rates of products with packed weights, for each kind of products that this machine has:
//!
//!     cargo bench -p pdr-audit-kernels --bench products [-- [--rounds N] [--weights N,K]]
//!
//! The kinds take turns in each round. Prints a table of GFLOP/s (`2 m n k`) on the threads of the pool: the median over
//! the rounds of the best of several products each. Products are added to the same results again and again, so that no memory
//! is taken from the system meanwhile.

use half::bf16;
use kernels::packed::{BlockFormat, Isa, Matrix, Packed, Products};
use std::time::{Duration, Instant};
use strum::VariantArray;

/// Weights `[n, k]` of the projections of pythia-70m and pythia-160m, of the head of the latter, and of projections of a
/// llama of 7 billion weights.
const WEIGHTS: [[usize; 2]; 7] =
    [[2_048, 512], [512, 2_048], [3_072, 768], [768, 3_072], [50_304, 768], [4_096, 4_096], [11_008, 4_096]];
/// Rows of activations: tokens of a batch.
const ROWS: [usize; 5] = [1, 8, 64, 256, 1_024];
/// Time that a kind runs for in a round, at least.
const TURN: Duration = Duration::from_millis(60);

/// A kind of products, and the weights for it.
struct Kind {
    name: String,
    packed: Packed,
    rates: Vec<f64>,
}

fn main() {
    let (mut rounds, mut shapes) = (5, WEIGHTS.to_vec());
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    while let Some(argument) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match (argument.as_str(), value.split_once(',')) {
            ("--rounds", None) => rounds = value.parse().expect("--rounds takes a number"),
            ("--weights", Some((n, k))) => {
                shapes = vec![[n, k].map(|size| size.parse().expect("--weights takes two sizes"))];
            }
            _ => panic!("usage: products [--rounds N] [--weights N,K]"),
        }
    }
    for (index, shape) in shapes.into_iter().enumerate() {
        let mut kinds = kinds(shape);
        if index == 0 {
            let names: Vec<_> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            println!("| weights [n, k] | rows | {} |\n|---|---{}|", names.join(" | "), "|---".repeat(kinds.len()));
        }
        for rows in ROWS {
            measure(&mut kinds, shape, rows, rounds);
            let cells: Vec<_> = kinds.iter_mut().map(|kind| format!("{:.0}", median(&mut kind.rates))).collect();
            println!("| {shape:?} | {rows} | {} |", cells.join(" | "));
        }
    }
}

/// Each instruction set that this machine has for inference, with each type of weights.
fn kinds([n, k]: [usize; 2]) -> Vec<Kind> {
    let weights: Vec<f32> = numbers(n * k);
    let halves: Vec<bf16> = weights.iter().copied().map(bf16::from_f32).collect();
    let mut kinds = Vec::new();
    for (products, weights, name) in [
        (Products::F32, Matrix::F32(&weights), "f32"),
        (Products::F32, Matrix::Bf16(&halves), "f32, weights in bf16"),
        (Products::Bf16, Matrix::Bf16(&halves), "bf16"),
    ] {
        for isa in [Isa::Avx512, Isa::Amx].into_iter().filter(|isa| isa.runs(products)) {
            let packed = Packed::new(weights, [n, k], products, isa);
            kinds.push(Kind { name: format!("{isa:?} {name}"), packed, rates: Vec::new() });
        }
    }
    for format in BlockFormat::VARIANTS.iter().copied().filter(|format| k.is_multiple_of(format.weights())) {
        let rows = random_blocks(format, n, k);
        let rows: Vec<&[u8]> = rows.chunks_exact(rows.len() / n).collect();
        for isa in [Isa::Avx2, Isa::Avx512].into_iter().filter(|isa| isa.runs_blocks()) {
            let packed = Packed::of_blocks(&rows, k, format, isa).expect("blocks with finite scales");
            kinds.push(Kind { name: format!("{isa:?} {}", format.name()), packed, rates: Vec::new() });
        }
    }
    kinds
}

/// Weights `[n, k]` of random bytes whose scales are small: a byte of 28 begins a half of about 0.004.
fn random_blocks(format: BlockFormat, n: usize, k: usize) -> Vec<u8> {
    let bytes = n * k / format.weights() * format.bytes();
    numbers(bytes).into_iter().map(|number| ((number * 14.0) as i8 + 14) as u8).collect()
}

/// Replaces the rates of all kinds, in GFLOP/s.
fn measure(kinds: &mut [Kind], [n, k]: [usize; 2], rows: usize, rounds: usize) {
    let x = numbers(rows * k);
    let (operations, mut out) = (2.0 * (rows * n * k) as f64, vec![0.0; rows * n]);
    kinds.iter_mut().for_each(|kind| kind.rates.clear());
    for _ in 0..rounds {
        for kind in kinds.iter_mut() {
            let (start, mut best) = (Instant::now(), Duration::MAX);
            while start.elapsed() < TURN {
                let product = Instant::now();
                kind.packed.multiply_onto(std::hint::black_box(&mut out), &x, None);
                best = best.min(product.elapsed());
            }
            kind.rates.push(operations / best.as_secs_f64() / 1e9);
        }
    }
}

/// Numbers between -1 and 1 that look random.
fn numbers(count: usize) -> Vec<f32> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1u32 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(&mut next).take(count).collect()
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
