//! Description of the methods for clients: parameters, defaults, ranges and needs.

use super::access::Access;
use super::definition::PdrPolicy;
use super::parameter_entry::{ParameterEntry, ParameterType};
use super::pdr::{WeightingEntry, WeightingName, weighting_entry};
use super::presets::{PresetEntry, PresetName, preset_entry};
use super::range::Fraction;
use super::registry::MethodName;
use super::resolve::MAX_LABEL_CHARS;
use serde::Serialize;
use strum::VariantArray;
use utoipa::ToSchema;

/// Every method, every weighting and every preset.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Catalogue {
    /// The methods.
    pub methods: Vec<MethodEntry>,
    /// Accepted values of `pdr.decay`: the positional decays, then the ablations.
    pub decays: Vec<WeightingEntry>,
    /// The presets.
    pub presets: Vec<PresetEntry>,
}

/// One method.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MethodEntry {
    /// Name in requests.
    pub name: MethodName,
    /// Quantity that it measures.
    pub summary: &'static str,
    /// Formula; higher means more likely a member. t = 1..n counts the scored tokens, logarithms are natural.
    pub formula: &'static str,
    /// Parameters of a request.
    pub parameters: Vec<ParameterEntry>,
    /// The weightings that `pdr` accepts here.
    pub decays: Vec<String>,
    /// True if `pdr` on this method goes beyond the PDR paper; its results then say `extension: true`.
    pub pdr_is_extension: bool,
    /// Why `pdr` is refused, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdr_refused: Option<&'static str>,
    /// Data that the score is computed from.
    pub needs: Vec<Access>,
    /// Sequences that run through a model for one text, beside the text itself.
    pub further_passes: &'static str,
    /// Publication of the method.
    pub source: &'static str,
}

/// Everything that [`resolve`](super::resolve()) knows.
pub fn catalogue() -> Catalogue {
    Catalogue {
        methods: MethodName::VARIANTS.iter().copied().map(method_entry).collect(),
        decays: WeightingName::VARIANTS.iter().copied().map(weighting_entry).collect(),
        presets: PresetName::VARIANTS.iter().copied().map(preset_entry).collect(),
    }
}

fn method_entry(name: MethodName) -> MethodEntry {
    let definition = name.definition();
    let description = definition.description;
    let (pdr_refused, pdr_is_extension, decays) = match definition.pdr {
        PdrPolicy::Refused(reason) => (Some(reason), false, Vec::new()),
        PdrPolicy::Accepted { published, text_alone, .. } => {
            let fits = |weighting: &&WeightingName| **weighting != WeightingName::EntropyDataset || text_alone;
            let decays = WeightingName::VARIANTS.iter().filter(fits).map(WeightingName::to_string).collect();
            (None, !published, decays)
        }
    };
    let parameters = definition.parameters.iter().map(|parameter| parameter.entry());
    MethodEntry {
        name,
        summary: description.summary,
        formula: description.formula,
        parameters: parameters.chain(common_parameters(pdr_refused.is_none())).collect(),
        decays,
        pdr_is_extension,
        pdr_refused,
        needs: description.needs.to_vec(),
        further_passes: description.further_passes,
        source: description.source,
    }
}

/// The parameters that all methods take, `pdr` only those that take weights.
fn common_parameters(takes_weights: bool) -> impl Iterator<Item = ParameterEntry> {
    let truncate = ParameterEntry {
        sweep: true,
        range: Some(Fraction::RANGE),
        ..ParameterEntry::optional(
            "truncate",
            ParameterType::Number,
            "Only this first share of the scored tokens is looked at, at least one token.",
        )
    };
    let pdr = ParameterEntry::optional(
        "pdr",
        ParameterType::Object,
        "Weights: `decay` and its parameters. Tokens are selected before they are weighted, unless `select` is `before`.",
    );
    let label = ParameterEntry::optional(
        "label",
        ParameterType::String,
        format!("Key of the scores, 1 to {MAX_LABEL_CHARS} characters; made from name and parameters if not given."),
    );
    [truncate].into_iter().chain(takes_weights.then_some(pdr)).chain([label])
}
