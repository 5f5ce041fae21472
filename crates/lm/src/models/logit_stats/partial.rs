//! The results of tiles, and how they are joined.

use kernels::row_statistics::Partial;
use mia::TokenStats;
use rayon::prelude::*;

/// Rows per task.
const ROWS_AT_ONCE: usize = 32;

/// The result of a tile for one row, and the target logit if the tile contains it.
pub type TileRow = (Partial, Option<f64>);

/// The statistics of `rows` rows from the results of all tiles, given by tile and row: joined in the order of the vocabulary
/// regardless of which tile was computed first, so that the sum has a fixed order.
pub fn join_tiles(tiles: usize, rows: usize, result: impl Fn(usize, usize) -> TileRow + Sync) -> Vec<TokenStats> {
    // Without tiles the vocabulary is empty, which no checkpoint has; NaN is refused by the caller.
    let unknown = TokenStats { lp: f64::NAN, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN };
    let stats_of_row = |row: usize| {
        let joined = (0..tiles).map(|tile| result(tile, row)).reduce(|(a, x), (b, y)| (a.join(b), x.or(y)));
        joined.map_or(unknown, |(partial, target)| stats(partial, target.unwrap_or(f64::NAN)))
    };
    (0..rows).into_par_iter().with_min_len(ROWS_AT_ONCE).map(stats_of_row).collect()
}

/// The four numbers, for the logit of the observed token.
fn stats(partial: Partial, target_logit: f64) -> TokenStats {
    let lse = partial.max + partial.weight.ln();
    TokenStats {
        lp: target_logit - lse,
        mu: partial.mean - lse,
        var: partial.squares / partial.weight,
        max_lp: partial.max - lse,
    }
}
