//! The architectures of the two models, which are those of Pythia.

use crate::vocabulary;
use lm::models::arch::{Arch, Biases, Positions, Residual, Sizes};
use lm::models::rotary::Rotary;

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
    let sizes = Sizes {
        vocab: vocabulary::SIZE,
        hidden: hidden_size,
        layers,
        heads,
        kv_heads: heads,
        head_dim,
        inner: 4 * hidden_size,
        context: 512,
    };
    Arch {
        residual: Residual::Parallel,
        positions: Positions::Rotary(rotary(head_dim)),
        biases: Biases { qkv: true, attention_out: true, mlp: true, head: false },
        ..Arch::new(sizes)
    }
}

/// A quarter of every head is rotated.
pub fn rotary(head_dim: usize) -> Rotary {
    Rotary::plain(head_dim / 4, 10_000.0)
}
