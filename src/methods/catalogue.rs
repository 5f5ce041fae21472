//! What clients are told about the methods: parameters, defaults, ranges and needs.

use super::method::{Method, MethodName};
use super::range::{Fraction, Range};
use super::resolve::MAX_LABEL_CHARS;
use super::weights::Decay;
use serde::Serialize;
use utoipa::ToSchema;

/// Every method and every decay.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct Catalogue {
    /// The methods.
    pub methods: Vec<MethodEntry>,
    /// The positional decays.
    pub decays: Vec<DecayEntry>,
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
    /// The decays that `pdr` accepts here.
    pub decays: Vec<Decay>,
    /// Whether `pdr` on this method goes beyond the PDR paper; its results then say `extension: true`.
    pub pdr_is_extension: bool,
    /// What the score is computed from.
    pub needs: Vec<Access>,
    /// Where the method was published.
    pub source: &'static str,
}

/// One positional decay.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct DecayEntry {
    /// What `pdr.decay` calls it.
    pub name: Decay,
    /// How its weights fall.
    pub summary: &'static str,
    /// The weight of position t of n; 1 where n = 1.
    pub formula: &'static str,
    /// What else `pdr` holds.
    pub parameters: Vec<Parameter>,
    /// Where the decay was published.
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
    /// What holds if it is not given; absent where nothing is set then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
    /// Values accepted, for a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// What it does.
    pub description: String,
}

/// JSON type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterType {
    /// A number.
    Number,
    /// A string.
    String,
    /// True or false.
    Boolean,
    /// An object.
    Object,
}

/// What a score is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// The log-probability of each token that came.
    LogProbabilities,
    /// Mean and variance of the log-probability over the vocabulary at each position.
    LogitMoments,
    /// The text itself.
    Text,
}

/// Every method and decay that [`resolve`](super::resolve()) knows.
pub fn catalogue() -> Catalogue {
    Catalogue {
        methods: MethodName::ALL.into_iter().map(method_entry).collect(),
        decays: Decay::ALL.into_iter().map(decay_entry).collect(),
    }
}

fn method_entry(name: MethodName) -> MethodEntry {
    let (summary, formula, needs, source) = match name {
        MethodName::Loss => (
            "Mean log-probability of the text's tokens.",
            "mean_t lp_t",
            vec![Access::LogProbabilities],
            "Yeom et al. 2018, arXiv:1709.01604",
        ),
        MethodName::Zlib => (
            "Mean log-probability over the text's own complexity, its bytes when compressed.",
            "mean_t lp_t / bytes(zlib level 6 of the full UTF-8 text)",
            vec![Access::LogProbabilities, Access::Text],
            "Carlini et al. 2021, arXiv:2012.07805",
        ),
        MethodName::MinK => (
            "Mean log-probability of the least likely tokens.",
            "mean of the max(1, floor(k n)) lowest lp_t",
            vec![Access::LogProbabilities],
            "Shi et al. 2024, arXiv:2310.16789",
        ),
        MethodName::MinKPlusPlus => (
            "As min_k, of log-probabilities standardised by the model's distribution at each position.",
            "mean of the max(1, floor(k n)) lowest (lp_t - mu_t) / sigma_t",
            vec![Access::LogProbabilities, Access::LogitMoments],
            "Zhang et al. 2024, arXiv:2404.02936",
        ),
    };
    MethodEntry {
        name,
        summary,
        formula,
        parameters: method_parameters(name),
        decays: Decay::ALL.to_vec(),
        pdr_is_extension: name.pdr_is_extension(),
        needs,
        source,
    }
}

fn method_parameters(name: MethodName) -> Vec<Parameter> {
    let k = Method::plain(name).base.k().map(|default| Parameter {
        default: Some(default.get().into()),
        range: Some(Fraction::RANGE),
        ..optional(
            "k",
            ParameterType::Number,
            "Share of the tokens that is selected; of equal values the earlier is taken.",
        )
    });
    let truncate = Parameter {
        range: Some(Fraction::RANGE),
        ..optional(
            "truncate",
            ParameterType::Number,
            "Only this first share of the scored tokens is looked at, at least one token.",
        )
    };
    let pdr = optional(
        "pdr",
        ParameterType::Object,
        "Positional decay: `decay` and its parameters. Tokens are selected before they are weighted.",
    );
    let label = optional(
        "label",
        ParameterType::String,
        format!("Key of the scores, 1 to {MAX_LABEL_CHARS} characters; made from name and parameters if not given."),
    );
    k.into_iter().chain([truncate, pdr, label]).collect()
}

fn decay_entry(decay: Decay) -> DecayEntry {
    let (summary, formula) = match decay {
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
    };
    let alpha = Parameter {
        required: true,
        range: Some(decay.alpha_range()),
        ..optional("alpha", ParameterType::Number, "How fast the weights fall.")
    };
    let normalize = Parameter {
        default: Some(false.into()),
        ..optional(
            "normalize",
            ParameterType::Boolean,
            "Divide by the sum of the selected tokens' weights instead of their number.",
        )
    };
    DecayEntry { name: decay, summary, formula, parameters: vec![alpha, normalize], source: "PDR, arXiv:2601.06827" }
}

fn optional(name: &'static str, kind: ParameterType, description: impl Into<String>) -> Parameter {
    Parameter { name, kind, required: false, default: None, range: None, description: description.into() }
}
