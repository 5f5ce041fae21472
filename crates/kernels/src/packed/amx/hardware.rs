//! The tile registers of the processor.

use super::machine::{StripProduct, TileMachine};
use super::{kernels, strips};
use crate::packed::matrix::{LANES, PackedLine};
use crate::packed::target::Target;
use crate::packed::terms::Terms;
use crate::packed::tile_panels::{COLUMNS, STEP, TILE_ROWS};
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::transmute;
use std::ops::Range;

/// The tile registers of this thread: 0 to 3 are sums, 4 and 5 activations, 6 and 7 weights.
pub struct Tiles(());

/// Operand of `ldtilecfg`.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl TileMachine for Tiles {
    unsafe fn configured(rows: usize) -> Self {
        let mut tiles = Self(());
        tiles.configure(rows);
        tiles
    }

    /// Fewer rows of activations take less time.
    fn configure(&mut self, rows: usize) {
        let (upper, lower) = (rows.min(TILE_ROWS) as u8, rows.saturating_sub(TILE_ROWS).max(1) as u8);
        let mut configuration =
            Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
        configuration.row_bytes[..8].fill(64);
        configuration.rows[..8].copy_from_slice(&[upper, upper, lower, lower, upper, lower, 16, 16]);
        // SAFETY: only a machine with the instructions is configured. The block may read memory, so that the configuration
        // is written before it.
        unsafe { asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, preserves_flags)) };
    }

    unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>, terms: usize) {
        // SAFETY: guaranteed by the caller.
        unsafe { convert(lines, x, k, steps, terms) };
    }

    unsafe fn multiply(&mut self, terms: Terms, product: &StripProduct) {
        if let Some(results) = product.results {
            fetch(results, product.rows);
        }
        // SAFETY: guaranteed by the caller.
        unsafe { kernels::multiply(terms, product) };
    }

    unsafe fn store(target: Target, sums: *const f32, rows: usize, columns: usize, stream: bool) {
        // SAFETY: guaranteed by the caller.
        unsafe { store(target, sums, rows, columns, stream) };
    }
}

impl Drop for Tiles {
    /// Returns the registers to their initial state, in which the system does not save them at every switch of threads.
    fn drop(&mut self) {
        // SAFETY: only a machine with the instructions is configured.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags)) };
    }
}

/// # Safety
/// As for [`TileMachine::convert`].
pub(super) unsafe fn convert(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>, terms: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match terms {
            1 => convert_to::<1>(lines, x, k, steps),
            2 => convert_to::<2>(lines, x, k, steps),
            _ => convert_to::<3>(lines, x, k, steps),
        }
    }
}

/// Tile after tile: for each step, 16 rows are read and the tiles of their terms written whole.
///
/// # Safety
/// As for [`TileMachine::convert`], for T terms.
#[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
unsafe fn convert_to<const T: usize>(lines: *mut PackedLine, x: &[f32], k: usize, steps: Range<usize>) {
    let rows = x.len() / k;
    for first in (0..rows).step_by(TILE_ROWS) {
        let tile_of = |step: usize, term| lines.wrapping_add(strips::line(rows, first, step, steps.len(), term, T));
        for step in steps.clone() {
            let tiles: [_; T] = std::array::from_fn(|term| tile_of(step - steps.start, term));
            let wanted = ((1u64 << (k - step * STEP).min(STEP)) - 1) as u32;
            for row in first..(first + TILE_ROWS).min(rows) {
                let values = x.as_ptr().wrapping_add(row * k + step * STEP);
                // SAFETY: the masks keep reads inside the row, and the caller guarantees room for the lines.
                unsafe {
                    let mut low = _mm512_maskz_loadu_ps(wanted as u16, values);
                    let mut high = _mm512_maskz_loadu_ps((wanted >> 16) as u16, values.wrapping_add(LANES));
                    for tile in tiles {
                        let bits: __m512i = transmute(_mm512_cvtne2ps_pbh(high, low));
                        _mm512_store_si512(tile.add(row - first).cast(), bits);
                        low = _mm512_sub_ps(low, widened(_mm512_castsi512_si256(bits)));
                        high = _mm512_sub_ps(high, widened(_mm512_extracti64x4_epi64::<1>(bits)));
                    }
                }
            }
        }
    }
}

/// Fetches the lines that results will be written to while their sums are computed.
fn fetch(results: Target, rows: usize) {
    for row in 0..rows {
        for half in 0..2 {
            let address = results.out.0.wrapping_add(row * results.stride + half * LANES);
            // SAFETY: a prefetch touches no memory that could be seen, wherever it points.
            unsafe { _mm_prefetch::<_MM_HINT_ET0>(address.cast_const().cast()) };
        }
    }
}

/// Sixteen bf16 as f32.
#[inline]
#[target_feature(enable = "avx512f")]
fn widened(halves: __m256i) -> __m512 {
    _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(halves)))
}

/// # Safety
/// As for [`TileMachine::store`].
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn store(target: Target, sums: *const f32, rows: usize, columns: usize, stream: bool) {
    for row in 0..rows {
        for column in [0, LANES] {
            // SAFETY: guaranteed by the caller.
            unsafe {
                let sum = _mm512_load_ps(sums.add(row * COLUMNS + column));
                let lanes = columns.saturating_sub(column);
                if stream && lanes >= LANES {
                    target.stream_vector(row, column, sum);
                } else {
                    target.write_vector(row, column, sum, lanes);
                }
            }
        }
    }
}
