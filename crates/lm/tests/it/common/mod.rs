//! Helpers shared by several test modules. The tests of the service take some of these files by their paths.

pub mod alone;
mod columns;
pub mod goldens;
pub mod gpt2;
pub mod outliers;
#[cfg(target_os = "linux")]
pub mod resident;

pub use columns::{bits, stats_columns};

/// One golden of each kind of weights, of attention and of network, where all of them take long.
pub const FEW: [&str; 4] = ["gptneox-bf16", "gptneox-f16", "llama-gqa", "mamba"];
