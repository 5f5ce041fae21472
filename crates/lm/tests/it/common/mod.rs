//! What several test modules share. The tests of the service take some of these files by their paths.

pub mod alone;
pub mod goldens;
pub mod gpt2;
pub mod outliers;
#[cfg(target_os = "linux")]
pub mod resident;

use mia::TokenStats;

/// One golden of each kind of weights, of attention and of network, where all of them take long.
pub const FEW: [&str; 4] = ["gptneox-bf16", "gptneox-f16", "llama-gqa", "mamba"];

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
