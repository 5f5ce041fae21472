//! The comparisons of the PDR paper (arXiv 2601.06827), with its parameters: its tables but FSD's, its ablation, and the
//! sweeps behind its figures.

mod expansion;
mod words;

pub use words::{PresetEntry, preset_entry};

use std::sync::Arc;
use strum::{Display, EnumString, VariantArray};
use utoipa::ToSchema;

/// The presets by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantArray, serde::Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum PresetName {
    /// The tables on WikiMIA; parameters depend on the length of the texts.
    PaperWikimia,
    /// The tables on MIMIR, which have no reference model.
    PaperMimir,
    /// The table of the ablation, in audits only; parameters depend on the length of the texts.
    PaperAblation,
    /// The grids of alpha over each decay.
    PaperAlpha,
    /// Truncation against linear decay.
    PaperTruncation,
}

/// The lengths in words for which the paper gives parameters on WikiMIA.
pub const LENGTHS: [usize; 3] = [32, 64, 128];

/// A preset with what it needs.
#[derive(Clone, Debug, PartialEq)]
pub enum Preset {
    PaperWikimia {
        /// 32, 64 or 128 words.
        length: usize,
        /// Id of the reference model.
        reference: Arc<str>,
    },
    PaperMimir,
    PaperAblation {
        /// 32, 64 or 128 words.
        length: usize,
        /// Id of the reference model.
        reference: Arc<str>,
    },
    PaperAlpha {
        /// Id of the reference model.
        reference: Arc<str>,
    },
    PaperTruncation {
        /// Id of the reference model.
        reference: Arc<str>,
    },
}

impl PresetName {
    /// Returns true if it takes `length`, the length of the texts in words.
    pub fn takes_length(self) -> bool {
        matches!(self, PresetName::PaperWikimia | PresetName::PaperAblation)
    }

    /// Returns true if it takes `reference`, the id of a reference model.
    pub fn takes_reference(self) -> bool {
        self != PresetName::PaperMimir
    }

    /// Returns true if `neighbor` is among its methods, so that it takes `generator`.
    pub fn takes_generator(self) -> bool {
        matches!(self, PresetName::PaperWikimia | PresetName::PaperMimir)
    }

    /// Returns true if one of its methods is weighted by `entropy_dataset`, which only an audit has.
    pub fn needs_audit(self) -> bool {
        self == PresetName::PaperAblation
    }
}
