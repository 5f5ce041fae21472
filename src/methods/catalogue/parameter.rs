//! The parameters as clients are told of them.

use super::super::name::MethodName;
use super::super::parameters::{self, A, COUNT, GAMMA, MAX_ENTROPY, MAX_PREFIX_TEXTS, Number, WINDOW};
use super::super::range::Fraction;
use super::super::resolve::MAX_LABEL_CHARS;
use super::super::weighting::WeightingName;
use super::{Parameter, ParameterType};
use crate::methods::Decay;
use serde_json::{Value, json};

/// What stands beside a method's name.
pub fn of_method(name: MethodName) -> Vec<Parameter> {
    let own = parameters::of(name).iter().map(|parameter| own(name, parameter));
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
        "Weights: `decay` and its parameters. Tokens are selected before they are weighted, unless `select` is `before`.",
    );
    let label = optional(
        "label",
        ParameterType::String,
        format!("Key of the scores, 1 to {MAX_LABEL_CHARS} characters; made from name and parameters if not given."),
    );
    let takes_weights = !matches!(name.decayed(), super::Decayed::Refused(_));
    own.chain([truncate]).chain(takes_weights.then_some(pdr)).chain([label]).collect()
}

fn own(name: MethodName, parameter: &'static str) -> Parameter {
    let texts = |what: &str| Parameter {
        required: true,
        ..optional(parameter, ParameterType::Strings, format!("{what}, 1 to {MAX_PREFIX_TEXTS}, none of them scored."))
    };
    match parameter {
        "k" => Parameter {
            sweep: true,
            default: name.default_k().map(|k| k.get().into()),
            range: Some(Fraction::RANGE),
            ..optional("k", ParameterType::Number, "Share of the tokens that is selected; of equal values the earlier.")
        },
        "reference" => optional(
            parameter,
            ParameterType::String,
            "Id of the reference model; the one that the settings give the model if left out.",
        ),
        "generator" => optional(
            parameter,
            ParameterType::Object,
            format!(
                "`model`, the id of a masked model that makes the neighbours, and `count`, the most of them, {} if left \
                 out, in {}; without it the neighbours come with the texts.",
                COUNT.default, COUNT.range
            ),
        ),
        "prefix" => texts("Non-members that are put before the text"),
        "non_members" => texts("Non-members that are put before the text"),
        "members" => texts("Members that are put before the text"),
        "align" => Parameter {
            default: Some("shared".into()),
            values: Some(vec!["shared".into(), "official".into()]),
            ..optional(
                parameter,
                ParameterType::String,
                "`official` counts every token of the text after the prefix, `shared` those that have a \
                 log-probability without it too, which the first has not.",
            )
        },
        "gamma" => number(parameter, GAMMA, "Weight of what members do to the text."),
        "window" => Parameter {
            kind: ParameterType::Integer,
            ..number(parameter, WINDOW, "Values in a moving average; shorter texts are not averaged.")
        },
        "max_entropy" => number(parameter, MAX_ENTROPY, "The model is sure where its entropy is below this, in nats."),
        "counts" => {
            optional(parameter, ParameterType::String, "Id of the token counts; may be left out if there is but one.")
        }
        _ => number(parameter, A, "The most that a token contributes."),
    }
}

/// What stands beside `decay`.
pub fn of_weighting(name: WeightingName) -> Vec<Parameter> {
    let alpha = Parameter {
        required: true,
        sweep: true,
        // Where there is a choice of the family, its own range holds.
        range: if let WeightingName::Decay(family) = name { Some(family.alpha_range()) } else { None },
        ..optional("alpha", ParameterType::Number, "How fast the weights fall; in the range of the family.")
    };
    let family = Parameter {
        default: Some(Decay::Linear.name().into()),
        values: Some(Decay::ALL.map(|family| family.name().into()).to_vec()),
        ..optional("family", ParameterType::String, "The decay whose weights are reordered; alpha is in its range.")
    };
    let seed = Parameter {
        default: Some(0.into()),
        ..optional("seed", ParameterType::Integer, "With the text, it determines the order.")
    };
    let select = Parameter {
        default: Some("after".into()),
        values: Some(vec!["after".into(), "before".into()]),
        ..optional(
            "select",
            ParameterType::String,
            "Whether `min_k` and `min_k_plus_plus` select by the raw values and weight after that, or by the weighted \
             values; other methods take only `after`.",
        )
    };
    let normalize = Parameter {
        default: Some(false.into()),
        ..optional(
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

/// A number with its range and default.
fn number(name: &'static str, number: Number, description: &str) -> Parameter {
    let default = if number.default.fract() == 0.0 { json!(number.default as i64) } else { json!(number.default) };
    Parameter {
        default: Some(default),
        range: Some(number.range),
        ..optional(name, ParameterType::Number, description)
    }
}

/// A parameter that need not be given and has no default.
pub fn optional(name: &'static str, kind: ParameterType, description: impl Into<String>) -> Parameter {
    Parameter {
        name,
        kind,
        required: false,
        sweep: false,
        default: None,
        range: None,
        values: None::<Vec<Value>>,
        description: description.into(),
    }
}
