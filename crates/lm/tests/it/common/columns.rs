//! Statistics under the names that goldens have for them.

use mia::TokenStats;

/// The statistics of a text, under the names of the columns of `expected.json`.
pub fn stats_columns(stats: &[TokenStats]) -> [(&'static str, Vec<f64>); 4] {
    let column = |field: fn(&TokenStats) -> f64| stats.iter().map(field).collect();
    [
        ("logp", column(|s| s.lp)),
        ("mu", column(|s| s.mu)),
        ("sigma", column(TokenStats::sigma)),
        ("top1", column(|s| s.max_lp)),
    ]
}

/// The bits of every statistic of a text.
pub fn bits(stats: &[TokenStats]) -> Vec<[u64; 4]> {
    stats.iter().map(|s| [s.lp, s.mu, s.var, s.max_lp].map(f64::to_bits)).collect()
}
