//! The weightings as clients are told of them.

use super::decay::Decay;
use super::weighting::WeightingName;
use crate::methods::access::Access;
use crate::methods::parameter_entry::{ParameterEntry, ParameterType};
use serde::Serialize;
use strum::VariantArray;
use utoipa::ToSchema;

/// The paper that introduces positional decay.
const PDR_PAPER: &str = "PDR, arXiv:2601.06827";

/// One weighting: a positional decay, or an ablation that the paper compares it with.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct WeightingEntry {
    /// Value of `pdr.decay`.
    #[schema(value_type = String)]
    pub name: String,
    /// Formula of its weights.
    pub summary: &'static str,
    /// The weight of position t of n; 1 where n = 1.
    pub formula: &'static str,
    /// Other fields of `pdr`.
    pub parameters: Vec<ParameterEntry>,
    /// True if it is an ablation and no decay.
    pub ablation: bool,
    /// Data that its weights are computed from; absent if they depend on position alone.
    pub needs: Vec<Access>,
    /// Publication.
    pub source: &'static str,
}

/// Returns the catalogue entry of a weighting.
pub fn weighting_entry(name: WeightingName) -> WeightingEntry {
    let (summary, formula, needs, source): (_, _, &[Access], _) = match name {
        WeightingName::Linear => (
            "Falls by the same step from 1 to 1 - alpha; alpha 0 is the undecayed score.",
            "w(t) = 1 - alpha (t-1)/(n-1)",
            &[],
            PDR_PAPER,
        ),
        WeightingName::Exponential => (
            "Falls by the same factor at every token, whatever the length; alpha 0 is the undecayed score.",
            "w(t) = exp(-alpha (t-1))",
            &[],
            PDR_PAPER,
        ),
        WeightingName::Polynomial => (
            "Falls from 1 to 0; alpha 1 is linear decay, a larger alpha falls faster.",
            "w(t) = (1 - (t-1)/(n-1))^alpha",
            &[],
            PDR_PAPER,
        ),
        WeightingName::Reverse => ("The weights of a decay backwards.", "w(n + 1 - t)", &[], PDR_PAPER),
        WeightingName::Random => (
            "The weights of a decay in an order that seed and text determine.",
            "w(permutation(t))",
            &[Access::Text],
            PDR_PAPER,
        ),
        WeightingName::EntropySample => (
            "The model's entropy at each position of the text.",
            "w(t) = H_t / max_t H_t",
            &[Access::FullLogits],
            PDR_PAPER,
        ),
        WeightingName::EntropyDataset => (
            "The mean entropy at each position over the texts of an audit; in audits only.",
            "w(t) = m_t / max_t m_t, m_t the mean of H_t over the texts with n >= t",
            &[Access::FullLogits],
            PDR_PAPER,
        ),
        WeightingName::Slope => (
            "Linear decay whose alpha is the slope of the text's losses, not clamped; the answer tells it.",
            "w(t) = 1 - alpha (t-1)/(n-1), alpha = least-squares slope of -lp_t on t",
            &[Access::LogProbabilities],
            "CAMIA, as an ablation of PDR, arXiv:2601.06827",
        ),
    };
    WeightingEntry {
        name: name.to_string(),
        summary,
        formula,
        parameters: parameters(name),
        ablation: name.decay().is_none(),
        needs: needs.to_vec(),
        source,
    }
}

/// Returns the fields of `pdr` beside `decay`.
fn parameters(name: WeightingName) -> Vec<ParameterEntry> {
    let alpha = ParameterEntry {
        required: true,
        sweep: true,
        // Where there is a choice of the family, its own range holds.
        range: name.decay().map(Decay::alpha_range),
        ..ParameterEntry::optional(
            "alpha",
            ParameterType::Number,
            "How fast the weights fall; in the range of the family.",
        )
    };
    let family = ParameterEntry {
        default: Some(Decay::Linear.to_string().into()),
        values: Some(Decay::VARIANTS.iter().map(|family| family.to_string().into()).collect()),
        ..ParameterEntry::optional(
            "family",
            ParameterType::String,
            "The decay whose weights are reordered; alpha is in its range.",
        )
    };
    let seed = ParameterEntry {
        default: Some(0.into()),
        ..ParameterEntry::optional("seed", ParameterType::Integer, "With the text, it determines the order.")
    };
    let select = ParameterEntry {
        default: Some("after".into()),
        values: Some(vec!["after".into(), "before".into()]),
        ..ParameterEntry::optional(
            "select",
            ParameterType::String,
            "Whether a method that selects tokens does so by the raw values, which are weighted after that, or by the \
             weighted values; other methods take only `after`.",
        )
    };
    let normalize = ParameterEntry {
        default: Some(false.into()),
        ..ParameterEntry::optional(
            "normalize",
            ParameterType::Boolean,
            "Divide by the sum of the selected tokens' weights instead of their number.",
        )
    };
    let family = name.takes_family().then_some(family);
    let alpha = name.takes_alpha().then_some(alpha);
    let seed = (name == WeightingName::Random).then_some(seed);
    family.into_iter().chain(alpha).chain(seed).chain([select, normalize]).collect()
}
