//! Mamba (Gu and Dao 2023) and Mamba-2 (Dao and Gu 2024).

use super::network::{Family, FamilyKind};
use crate::models::mamba::config;
use crate::models::storage::{Layout, Storage};

/// Both generations.
pub const FAMILIES: &[Family] = &[
    Family { model_type: "mamba", kind: FamilyKind::Mamba { arch: config::mamba } },
    Family { model_type: "mamba2", kind: FamilyKind::Mamba { arch: config::mamba2 } },
];

/// The authors' own files name the embedding without an s.
pub const STORAGE: Storage = Storage {
    roots: &["backbone."],
    names: &[
        ("embedding", &["embeddings"]),
        ("embedding", &["embedding"]),
        ("layers.*.norm", &["layers.*.norm"]),
        ("layers.*.in_proj", &["layers.*.mixer.in_proj"]),
        ("layers.*.conv", &["layers.*.mixer.conv1d"]),
        ("layers.*.x_proj", &["layers.*.mixer.x_proj"]),
        ("layers.*.time_proj", &["layers.*.mixer.dt_proj"]),
        ("layers.*.gated_norm", &["layers.*.mixer.norm"]),
        ("layers.*.out_proj", &["layers.*.mixer.out_proj"]),
        // Parameters without a module of their own: A_log, D and, in Mamba-2, dt_bias.
        ("layers.*", &["layers.*.mixer"]),
        ("final_norm", &["norm_f"]),
    ],
    head: &["lm_head"],
    layout: Layout::Canonical,
};
