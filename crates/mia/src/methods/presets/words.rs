//! The presets as clients are told of them.

use super::{LENGTHS, PresetName};
use crate::methods::neighbor::GENERATOR;
use crate::methods::parameter_entry::{ParameterEntry, ParameterType};
use crate::methods::parameters::AnyParameter;
use crate::methods::reference::REFERENCE;
use serde::Serialize;
use utoipa::ToSchema;

/// One preset.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PresetEntry {
    /// Value of `preset`.
    pub name: PresetName,
    /// Methods that it expands to.
    pub summary: &'static str,
    /// Fields beside `preset`.
    pub parameters: Vec<ParameterEntry>,
    /// True if it is for audits only, since its weights are computed from all texts.
    pub audit_only: bool,
    /// Whose tables it redoes.
    pub source: &'static str,
}

/// Returns the catalogue entry of a preset.
pub fn preset_entry(name: PresetName) -> PresetEntry {
    let length = || ParameterEntry {
        required: true,
        values: Some(LENGTHS.map(Into::into).to_vec()),
        ..ParameterEntry::optional(
            "length",
            ParameterType::Integer,
            "Length of the texts in words, which chooses the alphas.",
        )
    };
    let generator = || ParameterEntry {
        description: "As of the method `neighbor`, which is among the methods where this is given or the texts have \
                      neighbours."
            .to_owned(),
        ..GENERATOR.entry()
    };
    let parameters = [
        name.takes_length().then(length),
        name.takes_reference().then(|| REFERENCE.entry()),
        name.takes_generator().then(generator),
    ];
    PresetEntry {
        name,
        summary: summary(name),
        parameters: parameters.into_iter().flatten().collect(),
        audit_only: name.needs_audit(),
        source: "PDR, arXiv:2601.06827",
    }
}

fn summary(name: PresetName) -> &'static str {
    match name {
        PresetName::PaperWikimia => {
            "The tables on WikiMIA: lowercase, zlib, neighbor; loss, ref, min_k and min_k_plus_plus plain, with slope and \
             with each decay."
        }
        PresetName::PaperMimir => {
            "The tables on MIMIR: lowercase, zlib, neighbor; loss, min_k and min_k_plus_plus plain, with slope and with \
             each decay."
        }
        PresetName::PaperAblation => {
            "The table of the ablation, in audits only: loss, ref, min_k and min_k_plus_plus plain, with slope, random, \
             reverse, entropy_sample and entropy_dataset, with linear decay before the selection, and with each decay."
        }
        PresetName::PaperAlpha => {
            "Sharpness of the decay: loss, ref, min_k and min_k_plus_plus plain and with every alpha of each decay."
        }
        PresetName::PaperTruncation => {
            "Truncation against decay: loss, ref, min_k and min_k_plus_plus on the first 10 %, 20 %, ... 90 % of the \
             tokens, on all of them, and with linear decay."
        }
    }
}
