//! Tiles of f32 weights in AVX2 with FMA, with the bits of `scalar`: the sums of up to 4 rows and a third of a panel stay in 8
//! of the 16 registers, as many as keep both units of a processor busy. With 12 the compiler has too few left.
#![expect(
    clippy::needless_range_loop,
    reason = "every index is a constant after unrolling, so that sums stay in registers"
)]

use super::panels::{self, COLUMNS};
use super::rows::{Strip, Tile, Values};
use super::target::Target;
use std::arch::x86_64::*;

const LANES: usize = 8;
/// Vectors of a third of a panel.
const VECTORS: usize = COLUMNS / 3 / LANES;
const ROWS: usize = 4;

/// Computes the results of a tile of f32 weights.
///
/// # Safety
/// The requirements of [`super::scalar::fill`] hold, and the machine has AVX2 and FMA.
pub(super) unsafe fn fill(target: Target, tile: &Tile) {
    let Values::F32(x) = &tile.x.values else { unreachable!("f32 weights are multiplied by f32 rows") };
    for row in (0..tile.rows.len()).step_by(ROWS) {
        for column in (0..tile.columns).step_by(VECTORS * LANES) {
            let place = Place { target, tile, x, row, column };
            // SAFETY: guaranteed by the caller.
            unsafe {
                match tile.rows.len() - row {
                    1 => sums::<1>(&place),
                    2 => sums::<2>(&place),
                    3 => sums::<3>(&place),
                    _ => sums::<ROWS>(&place),
                }
            }
        }
    }
}

/// Some rows of a tile from one on, and a third of its columns.
struct Place<'a> {
    target: Target<'a>,
    tile: &'a Tile<'a>,
    x: &'a [f32],
    row: usize,
    column: usize,
}

/// # Safety
/// The requirements of [`fill`] hold for R rows from `place.row` on, and `place.column` is the first of a third of the columns.
#[target_feature(enable = "avx2,fma")]
unsafe fn sums<const R: usize>(place: &Place) {
    let &Place { target, tile, x, row, column } = place;
    let x = Strip::<R, _>::new(x, tile.rows.start + row, tile.k, tile.steps.clone());
    let lines = &tile.lines[..x.steps * panels::VECTORS];
    let mut weights = lines.as_ptr().cast::<f32>().wrapping_add(column);
    let mut sums = [[_mm256_setzero_ps(); VECTORS]; R];
    for q in 0..x.steps {
        // SAFETY: the lines hold all columns of each step, and a third of them begins at `column`.
        let load = |v| unsafe { _mm256_load_ps(weights.add(v * LANES)) };
        let step = [load(0), load(1)];
        for r in 0..R {
            // SAFETY: r is less than R, and q less than the steps of x.
            let x = _mm256_set1_ps(unsafe { x.get(r, q) });
            for v in 0..VECTORS {
                sums[r][v] = _mm256_fmadd_ps(x, step[v], sums[r][v]);
            }
        }
        weights = weights.wrapping_add(COLUMNS);
    }
    for r in 0..R {
        for v in 0..VECTORS {
            let mut lanes = [0f32; LANES];
            // SAFETY: there is room for all lanes.
            unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sums[r][v]) };
            for (column, sum) in (column + v * LANES..tile.columns).zip(lanes) {
                // SAFETY: guaranteed by the caller.
                unsafe { target.write(row + r, column, sum) };
            }
        }
    }
}
