//! The architecture of a decoder as plain data: everything the decoder needs to know, and nothing else.

use super::rotary::Rotary;
pub use kernels::activation::Activation;
pub use kernels::norm::NormKind;

/// Sizes that every decoder has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Outputs of the head, padding rows included.
    pub vocab: usize,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    /// Key and value heads; fewer than `heads` if query heads share them.
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Width of the MLP.
    pub inner: usize,
    /// The maximum number of positions the model was built for.
    pub context: usize,
}

impl Sizes {
    /// Width of all queries together.
    pub fn queries(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of all keys together, and of all values.
    pub fn keys(&self) -> usize {
        self.kv_heads * self.head_dim
    }
}

/// One causal decoder, as read from `config.json`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arch {
    pub sizes: Sizes,
    pub embedding: Embedding,
    pub positions: Positions,
    pub norm: NormKind,
    pub norm_eps: f64,
    pub residual: Residual,
    /// True if there is a norm before the head.
    pub final_norm: bool,
    pub attention: Attention,
    pub activation: Activation,
    /// True if the MLP is gated: it multiplies the activated half of its first projection by the other half.
    pub gated: bool,
    pub biases: Biases,
    pub head: HeadArch,
}

impl Arch {
    /// A decoder of these sizes with the choices that most families share: layer norms before each branch, rotary
    /// positions over the whole head, full attention scaled by `1 / sqrt(head_dim)`, a plain MLP, no biases, and an
    /// untied head. Each family overrides what differs.
    pub fn new(sizes: Sizes) -> Self {
        Self {
            sizes,
            embedding: Embedding { projected: None, scale: None },
            positions: Positions::Rotary(Rotary::plain(sizes.head_dim, 10_000.0)),
            norm: NormKind::Layer,
            norm_eps: 1e-5,
            residual: Residual::Pre,
            final_norm: true,
            attention: Attention {
                scale: 1.0 / (sizes.head_dim as f64).sqrt(),
                soft_cap: None,
                windows: vec![None; sizes.layers],
                query_key_norm: None,
            },
            activation: Activation::Gelu,
            gated: false,
            biases: Biases::default(),
            head: HeadArch { tied: false, soft_cap: None },
        }
    }

    /// Width of an embedded token, and of the input of the head.
    pub fn embedding_width(&self) -> usize {
        self.embedding.projected.unwrap_or(self.sizes.hidden)
    }

    /// Rows of the fused query, key and value projection.
    pub fn qkv_width(&self) -> usize {
        self.sizes.queries() + 2 * self.sizes.keys()
    }

    /// Rows of the first projection of the MLP: the gate, if there is one, then the rest.
    pub fn mlp_up_width(&self) -> usize {
        if self.gated { 2 * self.sizes.inner } else { self.sizes.inner }
    }
}

/// Embedding of tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Embedding {
    /// Width of the embedding, if projections lead from it to the hidden size and back (OPT-350m).
    pub projected: Option<usize>,
    /// A factor applied to embedded tokens (Gemma).
    pub scale: Option<f64>,
}

/// Encoding of a token's position.
#[derive(Clone, Debug, PartialEq)]
pub enum Positions {
    /// A learned vector per position is added to the embedding; position 0 is row `offset` of the table.
    Learned { offset: usize },
    /// Queries and keys are rotated.
    Rotary(Rotary),
}

/// Addition of attention and MLP to the residual stream x, and placement of the norms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// `x += attention(norm(x)); x += mlp(norm(x))`
    Pre,
    /// `x += attention(norm(x)) + mlp(norm(x))`, both computed from the same x.
    Parallel,
    /// `x = norm(x + attention(x)); x = norm(x + mlp(x))` (OPT-350m)
    Post,
    /// `x += norm(attention(norm(x))); x += norm(mlp(norm(x)))` (Gemma 2)
    Sandwich,
}

/// The parameters of attention.
#[derive(Clone, Debug, PartialEq)]
pub struct Attention {
    /// Factor applied to the scores.
    pub scale: f64,
    /// Scores s become `cap tanh(s / cap)` (Gemma 2).
    pub soft_cap: Option<f64>,
    /// For each layer, the number of keys a query attends to, its own included; `None` for all previous ones.
    pub windows: Vec<Option<usize>>,
    pub query_key_norm: Option<QueryKeyNorm>,
}

/// Span of the RMS norm of queries and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryKeyNorm {
    /// Each head separately, all heads with the same weight (Qwen 3).
    Head,
}

/// Which projections have a bias.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Biases {
    pub qkv: bool,
    pub attention_out: bool,
    pub mlp: bool,
    pub head: bool,
}

/// The projection to the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadArch {
    /// True if it uses the weights of the embedding.
    pub tied: bool,
    /// Logits x become `cap tanh(x / cap)` (Gemma 2).
    pub soft_cap: Option<f64>,
}
