//! Tiles in AVX-512: the sums of up to 8 rows and 48 columns stay in registers for a chain of k.
//!
//! This only works if every index is a constant after unrolling: a single reference or iterator that outlives inlining
//! moves the sums to memory at every step, at a fifth of the speed.
#![expect(clippy::needless_range_loop, reason = "see above")]

use super::matrix::{Element, LANES, PackedLine, ROWS};
use super::panels::{VECTORS, lines_of_pair};
use super::rows::{Strip, Tile, Values};
use super::target::Target;
use std::arch::x86_64::*;
use std::mem::transmute;

type Vectors = [__m512; VECTORS];

/// Computes the results of a tile.
///
/// # Safety
/// As for [`super::scalar::fill`]; and the machine has AVX-512F, and AVX512-BF16 if activations are pairs of bf16.
pub(super) unsafe fn fill(target: Target, tile: &Tile) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match tile.rows.len() {
            1 => sums::<1>(target, tile),
            2 => sums::<2>(target, tile),
            3 => sums::<3>(target, tile),
            4 => sums::<4>(target, tile),
            5 => sums::<5>(target, tile),
            6 => sums::<6>(target, tile),
            7 => sums::<7>(target, tile),
            _ => sums::<ROWS>(target, tile),
        }
    }
}

/// # Safety
/// As for [`fill`], for a tile of R rows.
unsafe fn sums<const R: usize>(target: Target, tile: &Tile) {
    prefetch::<R>(target);
    let (k, steps) = (tile.k, tile.steps.clone());
    let lines = &tile.lines[..steps.len().div_ceil(2) * lines_of_pair(tile.element)];
    // SAFETY: guaranteed by the caller; the slices are long enough, otherwise their creation panics.
    unsafe {
        match &tile.x.values {
            Values::F32(x) => {
                let x = Strip::<R, _>::new(x, tile.rows.start, k, steps);
                match tile.element {
                    Element::F32 => f32_tile::<R, F32>(target, &x, lines, tile.columns),
                    Element::F16 => f32_tile::<R, F16>(target, &x, lines, tile.columns),
                    Element::Bf16 => f32_tile::<R, Bf16>(target, &x, lines, tile.columns),
                }
            }
            Values::Pairs(pairs) => {
                let steps = steps.start / 2..steps.end.div_ceil(2);
                let x = Strip::<R, _>::new(pairs, tile.rows.start, k.div_ceil(2), steps);
                bf16_tile(target, &x, lines, tile.columns);
            }
            Values::Strips(_) => unreachable!("strips are multiplied as tiles"),
        }
    }
}

/// Prefetches the cache lines that the results will be written to while their sums are computed.
#[inline(always)]
fn prefetch<const R: usize>(target: Target) {
    for r in 0..R {
        for v in 0..VECTORS {
            let address = target.out.0.wrapping_add(r * target.stride + v * LANES);
            // SAFETY: a prefetch touches no memory that could be seen, wherever it points.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast_const().cast()) };
        }
    }
}

/// Conversion of weights to f32.
trait Widen {
    /// Lines for two steps of k.
    const LINES: usize;

    /// The first of two steps of k, or the second.
    ///
    /// # Safety
    /// `lines` points to [`Self::LINES`] lines, and the machine has AVX-512F.
    unsafe fn step<const SECOND: bool>(lines: *const PackedLine) -> Vectors;
}

struct F32;
struct F16;
struct Bf16;

impl Widen for F32 {
    const LINES: usize = 2 * VECTORS;

    #[inline(always)]
    unsafe fn step<const SECOND: bool>(lines: *const PackedLine) -> Vectors {
        // SAFETY: guaranteed by the caller.
        let load = |line| unsafe { _mm512_load_ps(lines.add(line + if SECOND { VECTORS } else { 0 }).cast()) };
        [load(0), load(1), load(2)]
    }
}

impl Widen for Bf16 {
    const LINES: usize = VECTORS;

    #[inline(always)]
    unsafe fn step<const SECOND: bool>(lines: *const PackedLine) -> Vectors {
        // SAFETY: guaranteed by the caller.
        let widened = |line| unsafe {
            let words = _mm512_load_si512(lines.add(line).cast());
            let upper = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            _mm512_castsi512_ps(if SECOND { _mm512_and_si512(words, upper) } else { _mm512_slli_epi32(words, 16) })
        };
        [widened(0), widened(1), widened(2)]
    }
}

impl Widen for F16 {
    const LINES: usize = VECTORS;

    #[inline(always)]
    unsafe fn step<const SECOND: bool>(lines: *const PackedLine) -> Vectors {
        // SAFETY: guaranteed by the caller.
        let widened = |line| unsafe {
            let words = _mm512_load_si512(lines.add(line).cast());
            _mm512_cvtph_ps(_mm512_cvtepi32_epi16(if SECOND { _mm512_srli_epi32(words, 16) } else { words }))
        };
        [widened(0), widened(1), widened(2)]
    }
}

/// # Safety
/// As for [`fill`]; and `lines` holds the steps of x.
#[target_feature(enable = "avx512f")]
unsafe fn f32_tile<const R: usize, W: Widen>(target: Target, x: &Strip<R, f32>, lines: &[PackedLine], columns: usize) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; R];
    let mut lines = lines.as_ptr();
    // SAFETY: every read is of row r < R at q < steps, or of the lines for q.
    unsafe {
        for q in (0..x.steps - x.steps % 2).step_by(2) {
            add(&mut sums, x, q, W::step::<false>(lines));
            add(&mut sums, x, q + 1, W::step::<true>(lines));
            lines = lines.add(W::LINES);
        }
        if !x.steps.is_multiple_of(2) {
            add(&mut sums, x, x.steps - 1, W::step::<false>(lines));
        }
        for r in 0..R {
            store(target, r, sums[r], columns);
        }
    }
}

/// Adds one step of k.
///
/// # Safety
/// q is less than the steps of x, and the machine has AVX-512F.
#[inline(always)]
unsafe fn add<const R: usize>(sums: &mut [Vectors; R], x: &Strip<R, f32>, q: usize, weights: Vectors) {
    for r in 0..R {
        // SAFETY: guaranteed by the caller.
        let x = unsafe { _mm512_set1_ps(x.get(r, q)) };
        for v in 0..VECTORS {
            // SAFETY: as above.
            sums[r][v] = unsafe { _mm512_fmadd_ps(x, weights[v], sums[r][v]) };
        }
    }
}

/// # Safety
/// As for [`f32_tile`], for steps of two.
#[target_feature(enable = "avx512f,avx512bf16")]
unsafe fn bf16_tile<const R: usize>(target: Target, x: &Strip<R, u32>, lines: &[PackedLine], columns: usize) {
    let mut sums = [[_mm512_setzero_ps(); VECTORS]; R];
    let lines = lines.as_ptr();
    // SAFETY: as in `f32_tile`; any bit pattern is a valid bf16.
    unsafe {
        for pair in 0..x.steps {
            let words =
                |line| transmute::<__m512i, __m512bh>(_mm512_load_si512(lines.add(pair * VECTORS + line).cast()));
            let weights = [words(0), words(1), words(2)];
            for r in 0..R {
                let x = transmute::<__m512i, __m512bh>(_mm512_set1_epi32(x.get(r, pair) as i32));
                for v in 0..VECTORS {
                    sums[r][v] = _mm512_dpbf16_ps(sums[r][v], x, weights[v]);
                }
            }
        }
        for r in 0..R {
            store(target, r, sums[r], columns);
        }
    }
}

/// Writes the sums of row r.
///
/// # Safety
/// `columns` elements are at row r of the target.
#[inline(never)]
#[target_feature(enable = "avx512f")]
unsafe fn store(target: Target, r: usize, sums: Vectors, columns: usize) {
    for (v, sum) in sums.into_iter().enumerate() {
        // SAFETY: guaranteed by the caller.
        unsafe { target.write_vector(r, v * LANES, sum, columns.saturating_sub(v * LANES)) };
    }
}
