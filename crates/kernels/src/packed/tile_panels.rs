//! The layout of weights for the tiles of [`amx`](super::amx): panels of columns, a step of k at a time.

use super::matrix::{Element, PackedLine};
use super::terms::{Terms, split, widened};

/// Rows of a tile.
pub const TILE_ROWS: usize = 16;
/// The k of a step.
pub const STEP: usize = 32;
/// Columns of a panel: two tiles.
pub const COLUMNS: usize = 32;

/// The steps of k; one of zeros where k is 0.
pub fn steps(k: usize) -> usize {
    k.div_ceil(STEP).max(1)
}

/// Lines of a panel for one step of k.
pub fn lines_of_step(terms: Terms) -> usize {
    terms.weight() * 2 * TILE_ROWS
}

/// Fills a panel of zeros with the terms of rows of weights `[n, k]`; each row is a column of the panel.
pub fn pack(lines: &mut [PackedLine], rows: &[&[u8]], element: Element, terms: Terms) {
    for (column, row) in rows.iter().enumerate() {
        for (q, value) in element.values(row).enumerate() {
            for (term, bits) in split::<3>(value).into_iter().enumerate().take(terms.weight()) {
                let (line, lane) = position(terms, term, column, q);
                lines[line].0[lane] |= u32::from(bits) << (16 * (q % 2));
            }
        }
    }
}

/// The weight of a column of a panel at q of k: the sum of its terms.
pub fn value(panel: &[PackedLine], terms: Terms, column: usize, q: usize) -> f32 {
    let term = |term| {
        let (line, lane) = position(terms, term, column, q);
        widened((panel[line].0[lane] >> (16 * (q % 2))) as u16)
    };
    // From the smallest on, so that no bit is lost.
    (0..terms.weight()).rev().map(term).sum()
}

/// The line of a panel and the word in it that hold a term of a column at q of k.
fn position(terms: Terms, term: usize, column: usize, q: usize) -> (usize, usize) {
    let tile = (q / STEP * terms.weight() + term) * 2 + column / TILE_ROWS;
    (tile * TILE_ROWS + q % STEP / 2, column % TILE_ROWS)
}
