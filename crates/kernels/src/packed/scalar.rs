//! The reference definition of the products, for any machine.

use super::flushed::fused;
use super::matrix::{CHAIN, blocks};
use super::panels;
use super::rows::{Tile, Values};
use super::target::Target;
use std::ops::Range;

/// Computes the results of a tile.
///
/// # Safety
/// The rows and columns of the tile are inside the allocation of `target`, and no other thread accesses them.
pub(super) unsafe fn fill(target: Target, tile: &Tile) {
    for (i, row) in tile.rows.clone().enumerate() {
        for column in 0..tile.columns {
            for (chain, steps) in blocks(tile.weights.k, CHAIN).enumerate() {
                let sum = match &tile.x.values {
                    Values::F32(x) => f32_sum(tile, &x[row * tile.weights.k..], steps, column),
                    Values::Pairs(pairs) => bf16_sum(tile, &pairs[row * tile.weights.k.div_ceil(2)..], steps, column),
                    Values::Strips(_) => unreachable!("strips are multiplied as tiles"),
                };
                let target = if chain > 0 { target.further() } else { target };
                // SAFETY: guaranteed by the caller.
                unsafe { target.write(i, column, sum) };
            }
        }
    }
}

fn f32_sum(tile: &Tile, row: &[f32], steps: Range<usize>, column: usize) -> f32 {
    steps.fold(0.0, |sum, q| row[q].mul_add(weight(tile, column, q), sum))
}

/// As `vdpbf16ps` computes it: subnormal numbers count as zero, and each product is added with one rounding, the second of a
/// pair first.
fn bf16_sum(tile: &Tile, row: &[u32], steps: Range<usize>, column: usize) -> f32 {
    let add = |sum: f32, q: usize| {
        let word = row[q / 2];
        let x = f32::from_bits(if q.is_multiple_of(2) { word << 16 } else { word & 0xffff_0000 });
        fused(x, weight(tile, column, q), sum)
    };
    let pairs = steps.start / 2..steps.end.div_ceil(2);
    pairs.fold(0.0, |sum, pair| add(add(sum, 2 * pair + 1), 2 * pair))
}

/// An element of the tile's panel.
fn weight(tile: &Tile, column: usize, q: usize) -> f32 {
    panels::value(tile.weights.panel(tile.panel), tile.weights.element, column, q)
}
