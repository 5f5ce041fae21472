//! Description of the methods for clients: parameters, defaults, ranges and needs.

use super::definition::{Access, PdrPolicy};
use super::neighbor::GENERATOR;
use super::parameter::{Parameter, ParameterEntry, ParameterKind, ParameterType};
use super::pdr::{Decay, Select, Weighting};
use super::presets::{LENGTHS, PresetName};
use super::range::Fraction;
use super::reference::REFERENCE;
use super::registry::MethodName;
use super::resolve::MAX_LABEL_CHARS;
use super::scope::Scope;
use serde::Serialize;
use strum::{VariantArray, VariantNames};
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
    #[schema(value_type = Vec<String>)]
    pub decays: Vec<&'static str>,
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
    /// The reason why it is unavailable for the model of the query; absent if it is available, or if the query names no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// Everything that [`resolve`](super::resolve()) knows.
pub fn catalogue() -> Catalogue {
    Catalogue {
        methods: MethodName::VARIANTS.iter().copied().map(method_entry).collect(),
        decays: Weighting::NAMED.map(weighting_entry).to_vec(),
        presets: PresetName::VARIANTS.iter().copied().map(preset_entry).collect(),
    }
}

impl Catalogue {
    /// Names the methods and weightings that the model of the scope does not have.
    #[must_use]
    pub fn for_model(mut self, scope: &Scope) -> Self {
        for (access, _) in scope.lacking() {
            let reason = || Some(format!("it needs {}", scope.lacks(access)));
            let methods = self.methods.iter_mut().filter(|entry| entry.needs.contains(&access));
            methods.for_each(|entry| entry.unavailable = reason());
            let decays = self.decays.iter_mut().filter(|entry| entry.needs.contains(&access));
            decays.for_each(|entry| entry.unavailable = reason());
        }
        if let (Some(model), Some(untunable)) = (scope.model, scope.untunable)
            && (!untunable.takes_adapters() || scope.adapters().is_empty())
        {
            let methods = self.methods.iter_mut().filter(|entry| entry.needs.contains(&Access::Adapter));
            methods.for_each(|entry| {
                let need = "it needs `adapter`, the model under an adapter";
                entry.unavailable = Some(format!("{need}, and there is none of model `{model}`, {untunable}"));
            });
        }
        self
    }
}

fn method_entry(name: MethodName) -> MethodEntry {
    let definition = name.definition();
    let (pdr_refused, pdr_is_extension, decays) = match definition.pdr {
        PdrPolicy::Refused(reason) => (Some(reason), false, Vec::new()),
        PdrPolicy::Accepted { published, text_alone, .. } => {
            let fits = |weighting: &Weighting| *weighting != Weighting::EntropyDataset || text_alone;
            (
                None,
                !published,
                Weighting::NAMED.iter().filter(|weighting| fits(weighting)).map(Weighting::name).collect(),
            )
        }
    };
    let parameters = definition.parameters.iter().map(|parameter| parameter.entry());
    MethodEntry {
        name,
        summary: definition.summary,
        formula: definition.formula,
        parameters: parameters.chain(common_parameters(pdr_refused.is_none())).collect(),
        decays,
        pdr_is_extension,
        pdr_refused,
        needs: definition.needs.to_vec(),
        further_passes: definition.further_passes,
        source: definition.source,
        unavailable: None,
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

/// The paper that introduces positional decay.
const PDR_PAPER: &str = "PDR, arXiv:2601.06827";

/// One weighting: a positional decay, or an ablation that the paper compares it with.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct WeightingEntry {
    /// Value of `pdr.decay`.
    pub name: &'static str,
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
    /// The reason why it is unavailable for the model of the query; absent if it is available, or if the query names no model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

fn weighting_entry(weighting: Weighting) -> WeightingEntry {
    let (summary, formula) = match weighting {
        Weighting::Decay(curve) => match curve.family() {
            Decay::Linear => (
                "Falls by the same step from 1 to 1 - alpha; alpha 0 is the undecayed score.",
                "w(t) = 1 - alpha (t-1)/(n-1)",
            ),
            Decay::Exponential => (
                "Falls by the same factor at every token, whatever the length; alpha 0 is the undecayed score.",
                "w(t) = exp(-alpha (t-1))",
            ),
            Decay::Polynomial => (
                "Falls from 1 to 0; alpha 1 is linear decay, a larger alpha falls faster.",
                "w(t) = (1 - (t-1)/(n-1))^alpha",
            ),
        },
        Weighting::Reverse(_) => ("The weights of a decay backwards.", "w(n + 1 - t)"),
        Weighting::Random { .. } => {
            ("The weights of a decay in an order that seed and text determine.", "w(permutation(t))")
        }
        Weighting::EntropySample => ("The model's entropy at each position of the text.", "w(t) = H_t / max_t H_t"),
        Weighting::EntropyDataset => (
            "The mean entropy at each position over the texts of an audit; in audits only.",
            "w(t) = m_t / max_t m_t, m_t the mean of H_t over the texts with n >= t",
        ),
        Weighting::Slope => (
            "Linear decay whose alpha is the slope of the text's losses, not clamped; the answer tells it.",
            "w(t) = 1 - alpha (t-1)/(n-1), alpha = least-squares slope of -lp_t on t",
        ),
    };
    let source = match weighting {
        Weighting::Slope => "CAMIA, as an ablation of PDR, arXiv:2601.06827",
        _ => PDR_PAPER,
    };
    WeightingEntry {
        name: weighting.name(),
        summary,
        formula,
        parameters: weighting_parameters(weighting),
        ablation: !matches!(weighting, Weighting::Decay(_)),
        needs: weighting.needs().to_vec(),
        source,
        unavailable: None,
    }
}

/// Returns the fields of `pdr` beside `decay`.
fn weighting_parameters(weighting: Weighting) -> Vec<ParameterEntry> {
    let alpha = ParameterEntry {
        required: true,
        sweep: true,
        // Where there is a choice of the family, its own range holds.
        range: match weighting {
            Weighting::Decay(curve) => Some(curve.family().alpha_range()),
            _ => None,
        },
        ..ParameterEntry::optional(
            "alpha",
            ParameterType::Number,
            "How fast the weights fall; in the range of the family.",
        )
    };
    let family = Parameter {
        name: "family",
        kind: ParameterKind::Choice(<Decay as VariantNames>::VARIANTS),
        description: "The decay whose weights are reordered; alpha is in its range.",
    };
    let seed = ParameterEntry {
        default: Some(0.into()),
        ..ParameterEntry::optional("seed", ParameterType::Integer, "With the text, it determines the order.")
    };
    let select = Parameter {
        name: "select",
        kind: ParameterKind::Choice(Select::VARIANTS),
        description: "Whether a method that selects tokens does so by the raw values, which are weighted after that, or by \
                      the weighted values; other methods take only `after`.",
    };
    let normalize = ParameterEntry {
        default: Some(false.into()),
        ..ParameterEntry::optional(
            "normalize",
            ParameterType::Boolean,
            "Divide by the sum of the selected tokens' weights instead of their number.",
        )
    };
    let family = weighting.takes_family().then(|| family.entry());
    let alpha = weighting.curve().is_some().then_some(alpha);
    let seed = matches!(weighting, Weighting::Random { .. }).then_some(seed);
    family.into_iter().chain(alpha).chain(seed).chain([select.entry(), normalize]).collect()
}

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

fn preset_entry(name: PresetName) -> PresetEntry {
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
        summary: preset_summary(name),
        parameters: parameters.into_iter().flatten().collect(),
        audit_only: name.needs_audit(),
        source: PDR_PAPER,
    }
}

fn preset_summary(name: PresetName) -> &'static str {
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
