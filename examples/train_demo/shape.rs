//! The two models, in the shape of Pythia.

use crate::vocabulary;
use pdr_audit::models::arch::{Activation, Arch, Biases, Residual};
use pdr_audit::models::rotary::Rotary;

/// 2.6 million parameters.
pub fn demo() -> Arch {
    pythia(192, 4, 6)
}

/// 0.6 million parameters.
pub fn reference() -> Arch {
    pythia(96, 2, 3)
}

fn pythia(hidden_size: usize, layers: usize, heads: usize) -> Arch {
    let head_dim = hidden_size / heads;
    Arch {
        vocab_size: vocabulary::SIZE,
        hidden_size,
        layers,
        heads,
        kv_heads: heads,
        head_dim,
        intermediate_size: 4 * hidden_size,
        context: 512,
        norm_eps: 1e-5,
        residual: Residual::Parallel,
        rotary: Rotary { dims: head_dim / 4, theta: 10_000.0 },
        activation: Activation::Gelu,
        biases: Biases { attention: true, mlp: true, head: false },
        tied_head: false,
    }
}
