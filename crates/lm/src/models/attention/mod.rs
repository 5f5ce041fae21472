//! Causal self-attention in a forward pass, in every form.

mod gpu;
mod padded;
mod parts;
mod plan;

pub use padded::MOST_SCORES;
pub use plan::AttentionPlan;
