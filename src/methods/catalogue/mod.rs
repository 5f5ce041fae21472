//! What clients are told about the methods: parameters, defaults, ranges and needs.

mod describe;
mod parameter;

use super::name::{Decayed, MethodName};
use super::presets::PresetName;
use super::range::Range;
use super::weighting::WeightingName;
use serde::Serialize;
use utoipa::ToSchema;

/// Every method, every weighting and every preset.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Catalogue {
    /// The methods.
    pub methods: Vec<MethodEntry>,
    /// What `pdr.decay` can be: the positional decays, then the ablations.
    pub decays: Vec<WeightingEntry>,
    /// The presets.
    pub presets: Vec<PresetEntry>,
}

/// One method.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct MethodEntry {
    /// What requests call it.
    pub name: MethodName,
    /// What it measures.
    pub summary: &'static str,
    /// How; higher means more likely a member. t = 1..n counts the scored tokens, logarithms are natural.
    pub formula: &'static str,
    /// What a request can set beside the name.
    pub parameters: Vec<Parameter>,
    /// The weightings that `pdr` accepts here.
    #[schema(value_type = Vec<String>)]
    pub decays: Vec<&'static str>,
    /// Whether `pdr` on this method goes beyond the PDR paper; its results then say `extension: true`.
    pub pdr_is_extension: bool,
    /// Why `pdr` is refused, where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdr_refused: Option<&'static str>,
    /// What the score is computed from.
    pub needs: Vec<Access>,
    /// Sequences that run through a model for one text, beside the text itself.
    pub further_passes: &'static str,
    /// Where the method was published.
    pub source: &'static str,
}

/// One weighting: a positional decay, or an ablation that the paper compares it with.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct WeightingEntry {
    /// What `pdr.decay` calls it.
    pub name: &'static str,
    /// What its weights are.
    pub summary: &'static str,
    /// The weight of position t of n; 1 where n = 1.
    pub formula: &'static str,
    /// What else `pdr` holds.
    pub parameters: Vec<Parameter>,
    /// Whether it is an ablation and no decay.
    pub ablation: bool,
    /// What its weights are computed from; nothing where they depend on position alone.
    pub needs: Vec<Access>,
    /// Where it was published.
    pub source: &'static str,
}

/// One preset.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct PresetEntry {
    /// What `preset` calls it.
    pub name: PresetName,
    /// What it expands to.
    pub summary: &'static str,
    /// What stands beside `preset`.
    pub parameters: Vec<Parameter>,
    /// Whose tables it redoes.
    pub source: &'static str,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Parameter {
    /// Field of the request.
    pub name: &'static str,
    /// JSON type.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// Whether it must be given.
    pub required: bool,
    /// Whether it may be a list, which makes a method for each of its values.
    pub sweep: bool,
    /// What holds if it is not given; absent where nothing is set then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
    /// Values accepted, for a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// Values accepted, for one of a few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<serde_json::Value>>,
    /// What it does.
    pub description: String,
}

/// JSON type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterType {
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// A string.
    String,
    /// A list of strings.
    Strings,
    /// True or false.
    Boolean,
    /// An object.
    Object,
}

/// What a score is computed from: what of the model must be seen, and what else there must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The text itself.
    Text,
    /// The log-probability of each token that came.
    LogProbabilities,
    /// The model's whole distribution at each position, reduced to its moments or its maximum.
    FullLogits,
    /// A second model.
    ReferenceModel,
    /// Neighbours of the text, or a masked model that makes them.
    Neighbors,
    /// Texts that are known to be, or not to be, members.
    KnownTexts,
    /// Token counts of a reference corpus.
    TokenCounts,
}

/// Everything that [`resolve`](super::resolve()) knows.
pub fn catalogue() -> Catalogue {
    Catalogue {
        methods: MethodName::ALL.into_iter().map(method_entry).collect(),
        decays: WeightingName::ALL.into_iter().map(describe::weighting).collect(),
        presets: PresetName::ALL.into_iter().map(describe::preset).collect(),
    }
}

fn method_entry(name: MethodName) -> MethodEntry {
    let describe::Described { summary, formula, needs, further_passes, source } = describe::method(name);
    let (pdr_refused, accepted): (_, Vec<WeightingName>) = match name.decayed() {
        Decayed::Refused(reason) => (Some(reason), Vec::new()),
        _ => (None, WeightingName::ALL.into_iter().filter(|weighting| accepts(name, *weighting)).collect()),
    };
    MethodEntry {
        name,
        summary,
        formula,
        parameters: parameter::of_method(name),
        decays: accepted.into_iter().map(WeightingName::name).collect(),
        pdr_is_extension: name.decayed() == Decayed::Extension,
        pdr_refused,
        needs,
        further_passes,
        source,
    }
}

fn accepts(name: MethodName, weighting: WeightingName) -> bool {
    weighting != WeightingName::EntropyDataset || name.weights_the_text_alone()
}
