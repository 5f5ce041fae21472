//! The reference definition of the products, for any machine.

use super::flushed::fused;
use super::panels;
use super::rows::{Tile, Values};
use super::target::Target;

/// Computes the results of a tile.
///
/// # Safety
/// The rows and columns of the tile are inside the allocation of `target`, and no other thread accesses them.
pub(super) unsafe fn fill(target: Target, tile: &Tile) {
    for (i, row) in tile.rows.clone().enumerate() {
        for column in 0..tile.columns {
            let sum = match &tile.x.values {
                Values::F32(x) => f32_sum(tile, &x[row * tile.k..], column),
                Values::Pairs(pairs) => bf16_sum(tile, &pairs[row * tile.k.div_ceil(2)..], column),
                Values::Strips(_) => unreachable!("strips are multiplied as tiles"),
            };
            // SAFETY: guaranteed by the caller.
            unsafe { target.write(i, column, sum) };
        }
    }
}

fn f32_sum(tile: &Tile, row: &[f32], column: usize) -> f32 {
    tile.steps.clone().fold(0.0, |sum, q| row[q].mul_add(weight(tile, column, q), sum))
}

/// As `vdpbf16ps` computes it: subnormal numbers count as zero, and each product is added with one rounding, the second of a
/// pair first.
fn bf16_sum(tile: &Tile, row: &[u32], column: usize) -> f32 {
    let add = |sum: f32, q: usize| {
        let word = row[q / 2];
        let x = f32::from_bits(if q.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 });
        fused(x, weight(tile, column, q), sum)
    };
    let pairs = tile.steps.start / 2..tile.steps.end.div_ceil(2);
    pairs.fold(0.0, |sum, pair| add(add(sum, 2 * pair + 1), 2 * pair))
}

/// An element of the tile's panel.
fn weight(tile: &Tile, column: usize, q: usize) -> f32 {
    panels::value(tile.lines, tile.element, column, q - tile.steps.start)
}
