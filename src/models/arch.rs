//! The architecture of a model as plain data: everything the decoder needs to know and nothing it does not.

use super::rotary::Rotary;

/// One causal decoder, as read from `config.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arch {
    /// Outputs of the head, padding rows included.
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub intermediate_size: usize,
    /// The most positions the model was built for.
    pub context: usize,
    /// Epsilon of every layer norm.
    pub norm_eps: f64,
    pub residual: Residual,
    pub rotary: Rotary,
    pub activation: Activation,
    pub biases: Biases,
    /// The head multiplies by the embedding.
    pub tied_head: bool,
}

/// How attention and MLP join the residual stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// `x += attention(norm1(x)); x += mlp(norm2(x))`
    Sequential,
    /// `x += attention(norm1(x)) + mlp(norm2(x))`, both of the same x.
    Parallel,
}

/// The nonlinearity of the MLP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// x times the normal distribution function of x, by erf.
    Gelu,
    /// The same by a tanh (Hendrycks and Gimpel 2016), which GPT-NeoX-20B calls `gelu_fast`.
    GeluTanh,
    Relu,
}

/// Which projections add a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Biases {
    /// The fused query, key and value projection and the attention's output.
    pub attention: bool,
    pub mlp: bool,
    pub head: bool,
}
