//! The architectures of GGUF files that are read, as data: what their metadata mean, and how their tensors are named and
//! ordered, by what llama.cpp's `convert_hf_to_gguf.py` writes.

use crate::models::storage::{Layout, Storage};

/// One value of `general.architecture`.
pub struct Architecture {
    /// Prefix of its metadata keys.
    pub name: &'static str,
    pub model_type: &'static str,
    /// Metadata keys without their prefix, and the keys of `config.json` that they become.
    pub required: &'static [(&'static str, &'static str)],
    pub optional: &'static [(&'static str, &'static str)],
    /// The key of `config.json` for the part of a head that is rotated; `None` if it is always the whole head.
    pub rotated: Option<&'static str>,
    /// The key of `config.json` for a window of attention; `None` if the architecture has none.
    pub window: Option<&'static str>,
    /// The biases that files may have or lack: a tensor of the first layer, and the flag of `config.json`.
    pub biases: &'static [(&'static str, &'static str)],
    pub storage: Storage,
}

impl Architecture {
    pub fn find(name: &str) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|architecture| architecture.name == name)
    }

    /// The names of all, for messages.
    pub fn names() -> String {
        ARCHITECTURES.iter().map(|architecture| architecture.name).collect::<Vec<_>>().join(", ")
    }

    /// The metadata key that becomes this key of `config.json`.
    pub fn key(&self, config_key: &str) -> Option<String> {
        let fields = self.required.iter().chain(self.optional);
        let windows = self.window.map(|key| (WINDOW, key));
        let rotated = self.rotated.map(|key| (ROTATED, key));
        let mut all = fields.copied().chain(windows).chain(rotated);
        all.find(|(_, key)| *key == config_key).map(|(key, _)| format!("{}.{key}", self.name))
    }
}

/// Metadata keys that several architectures have.
pub const WINDOW: &str = "attention.sliding_window";
pub const ROTATED: &str = "rope.dimension_count";

const SIZES: [(&str, &str); 7] = [
    ("embedding_length", "hidden_size"),
    ("block_count", "num_hidden_layers"),
    ("attention.head_count", "num_attention_heads"),
    ("feed_forward_length", "intermediate_size"),
    ("context_length", "max_position_embeddings"),
    ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    ("attention.head_count_kv", "num_key_value_heads"),
];

const OPTIONAL: [(&str, &str); 2] = [("attention.key_length", "head_dim"), ("rope.freq_base", "rope_theta")];

/// Queries, keys and values are apart or one tensor, and so are the gate of the MLP and its factor: as in Phi 3. Norms
/// of branches are those of Gemma 2, to which the converter adds the one that its layers add when they compute.
const LLAMA_NAMES: &[(&str, &[&str])] = &[
    ("embedding", &["token_embd"]),
    ("layers.*.attention_norm", &["blk.*.attn_norm"]),
    ("layers.*.attention_branch_norm", &["blk.*.post_attention_norm"]),
    ("layers.*.mlp_norm", &["blk.*.ffn_norm"]),
    ("layers.*.mlp_branch_norm", &["blk.*.post_ffw_norm"]),
    ("layers.*.query_norm", &["blk.*.attn_q_norm"]),
    ("layers.*.key_norm", &["blk.*.attn_k_norm"]),
    ("layers.*.qkv", &["blk.*.attn_q", "blk.*.attn_k", "blk.*.attn_v"]),
    ("layers.*.attention_out", &["blk.*.attn_output"]),
    ("layers.*.mlp_up", &["blk.*.ffn_gate", "blk.*.ffn_up"]),
    ("layers.*.mlp_down", &["blk.*.ffn_down"]),
    ("final_norm", &["output_norm"]),
];

/// llama.cpp rotates neighbouring elements of LLaMA's heads, and its converter orders the rows of queries and keys for that.
const LLAMA: Storage = Storage { roots: &[""], names: LLAMA_NAMES, head: &["output"], layout: Layout::NeighbourPairs };

const CANONICAL: Storage = Storage { layout: Layout::Canonical, ..LLAMA };

/// The converter transposes GPT-2's projections, and undoes the order head by head of those of GPT-NeoX.
const FUSED: Storage = Storage {
    names: &[
        ("embedding", &["token_embd"]),
        ("positions", &["position_embd"]),
        ("layers.*.attention_norm", &["blk.*.attn_norm"]),
        ("layers.*.mlp_norm", &["blk.*.ffn_norm"]),
        ("layers.*.qkv", &["blk.*.attn_qkv"]),
        ("layers.*.attention_out", &["blk.*.attn_output"]),
        ("layers.*.mlp_up", &["blk.*.ffn_up"]),
        ("layers.*.mlp_down", &["blk.*.ffn_down"]),
        ("final_norm", &["output_norm"]),
    ],
    ..CANONICAL
};

const ARCHITECTURES: &[Architecture] = &[
    Architecture {
        name: "llama",
        model_type: "llama",
        required: SIZES.split_at(6).0,
        optional: &[SIZES[6], OPTIONAL[0], OPTIONAL[1]],
        rotated: None,
        // Of Mistral, which is of this architecture.
        window: Some("sliding_window"),
        biases: &[("blk.0.attn_output.bias", "attention_bias"), ("blk.0.ffn_down.bias", "mlp_bias")],
        storage: LLAMA,
    },
    Architecture {
        name: "qwen2",
        model_type: "qwen2",
        required: &SIZES,
        optional: &OPTIONAL,
        rotated: None,
        window: None,
        biases: &[],
        storage: CANONICAL,
    },
    Architecture {
        name: "qwen3",
        model_type: "qwen3",
        required: &SIZES,
        optional: &OPTIONAL,
        rotated: None,
        window: None,
        biases: &[("blk.0.attn_output.bias", "attention_bias")],
        storage: CANONICAL,
    },
    Architecture {
        name: "gemma2",
        model_type: "gemma2",
        required: &[
            SIZES[0],
            SIZES[1],
            SIZES[2],
            SIZES[3],
            SIZES[4],
            SIZES[5],
            SIZES[6],
            OPTIONAL[0],
            ("attn_logit_softcapping", "attn_logit_softcapping"),
            ("final_logit_softcapping", "final_logit_softcapping"),
        ],
        optional: &[OPTIONAL[1]],
        rotated: None,
        window: Some("sliding_window"),
        biases: &[],
        storage: CANONICAL,
    },
    Architecture {
        name: "phi3",
        model_type: "phi3",
        required: &SIZES,
        optional: &OPTIONAL,
        rotated: Some("partial_rotary_factor"),
        window: Some("sliding_window"),
        biases: &[],
        storage: FUSED,
    },
    Architecture {
        name: "gpt2",
        model_type: "gpt2",
        required: &[
            ("embedding_length", "n_embd"),
            ("block_count", "n_layer"),
            ("attention.head_count", "n_head"),
            ("feed_forward_length", "n_inner"),
            ("context_length", "n_positions"),
            ("attention.layer_norm_epsilon", "layer_norm_epsilon"),
        ],
        optional: &[],
        rotated: None,
        window: None,
        biases: &[],
        storage: FUSED,
    },
    Architecture {
        name: "gptneox",
        model_type: "gpt_neox",
        required: &[
            SIZES[0],
            SIZES[1],
            SIZES[2],
            SIZES[3],
            SIZES[4],
            ("attention.layer_norm_epsilon", "layer_norm_eps"),
            ("use_parallel_residual", "use_parallel_residual"),
        ],
        optional: &[("rope.freq_base", "rotary_emb_base")],
        rotated: Some("rotary_pct"),
        window: None,
        biases: &[],
        storage: FUSED,
    },
];
