//! The results of tiles, and how they are joined.

use crate::token_stats::TokenStats;
use rayon::prelude::*;

/// Rows per task.
const ROWS_AT_ONCE: usize = 32;

/// The distribution over a part of the vocabulary, with weights relative to `e^max`.
#[derive(Clone, Copy, Debug)]
pub struct Partial {
    pub max: f64,
    /// Sum of `e^(x - max)`.
    pub weight: f64,
    /// Weighted mean of x.
    pub mean: f64,
    /// Weighted sum of squared deviations from the mean.
    pub squares: f64,
}

/// The result of a tile for one row, and the target logit if the tile contains it.
pub type TileRow = (Partial, Option<f64>);

/// The statistics of `rows` rows from the results of all tiles, given by tile and row: joined in the order of the vocabulary
/// regardless of which tile was computed first, so that the sum has a fixed order.
pub fn join_tiles(tiles: usize, rows: usize, result: impl Fn(usize, usize) -> TileRow + Sync) -> Vec<TokenStats> {
    // Without tiles the vocabulary is empty, which no checkpoint has; NaN is refused by the caller.
    let unknown = TokenStats { lp: f64::NAN, mu: f64::NAN, var: f64::NAN, max_lp: f64::NAN };
    let stats_of_row = |row: usize| {
        let joined = (0..tiles).map(|tile| result(tile, row)).reduce(|(a, x), (b, y)| (a.join(b), x.or(y)));
        joined.map_or(unknown, |(partial, target)| partial.stats(target.unwrap_or(f64::NAN)))
    };
    (0..rows).into_par_iter().with_min_len(ROWS_AT_ONCE).map(stats_of_row).collect()
}

impl Partial {
    /// Joins two parts.
    pub fn join(self, other: Self) -> Self {
        // A part with impossible tokens only contributes nothing; the distance of two such maxima would be NaN.
        if other.weight == 0.0 {
            return self;
        }
        if self.weight == 0.0 {
            return other;
        }
        let max = self.max.max(other.max);
        let (a, b) = ((self.max - max).exp(), (other.max - max).exp());
        let (wa, wb) = (self.weight * a, other.weight * b);
        let weight = wa + wb;
        let delta = other.mean - self.mean;
        Self {
            max,
            weight,
            mean: self.mean + delta * wb / weight,
            squares: self.squares * a + other.squares * b + delta * delta * wa * wb / weight,
        }
    }

    /// The four numbers, for the logit of the observed token.
    fn stats(self, target_logit: f64) -> TokenStats {
        let lse = self.max + self.weight.ln();
        TokenStats {
            lp: target_logit - lse,
            mu: self.mean - lse,
            var: self.squares / self.weight,
            max_lp: self.max - lse,
        }
    }
}
