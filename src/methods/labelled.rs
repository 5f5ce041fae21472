//! A method under the label that its scores are reported by.

use super::base::{Align, Base, Reading};
use super::method::Method;
use super::name::MethodName;
use super::pdr::{Pdr, Spelt};
use super::range::Fraction;
use super::request::PdrRequest;
use super::texts::Texts;
use super::view::Generator;
use serde::{Serialize, Serializer};
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// A method and its label, unique within a request.
///
/// Serialises as the echo of the request: every parameter, defaults included.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledMethod {
    /// The key of this method's scores.
    pub label: Arc<str>,
    /// What is computed.
    pub method: Method,
    /// Place in the request's list of what it was made from, from 0.
    pub place: usize,
    /// Whether that is a preset.
    pub of_preset: bool,
}

impl From<Method> for LabelledMethod {
    /// Under the label made from name and parameters.
    fn from(method: Method) -> LabelledMethod {
        LabelledMethod { label: method.label().into(), method, place: 0, of_preset: false }
    }
}

/// What is computed when a request names no methods: the four that need nothing but the text, plain and then with
/// linear decay.
pub fn default_methods() -> Vec<LabelledMethod> {
    let k = Fraction::FIFTH;
    let bases = [Base::Loss, Base::Zlib, Base::MinK { k }, Base::MinKPlusPlus { k }];
    let with = |pdr: Option<Pdr>| bases.clone().map(|base| Method { pdr, ..base.into() });
    with(None).into_iter().chain(with(Some(Pdr::LINEAR))).map(LabelledMethod::from).collect()
}

/// A method as it was understood: every parameter, defaults included.
#[derive(Serialize, ToSchema)]
struct Echo<'a> {
    /// The key of this method's scores.
    label: &'a str,
    /// Name of the method.
    name: MethodName,
    /// The parameters of this method.
    #[serde(flatten)]
    parameters: Parameters<'a>,
    /// First share of the scored tokens, if the rest is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<Fraction>,
    /// Weights, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<PdrRequest>)]
    pdr: Option<Spelt>,
    /// `true` where the combination goes beyond the PDR paper, else absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    extension: bool,
    /// What a reader of the scores must know.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// The parameters of all methods; each has its own.
#[derive(Default, Serialize, ToSchema)]
#[serde(default)]
struct Parameters<'a> {
    /// Share of tokens selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<Fraction>,
    /// Id of the reference model.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    /// What makes the neighbours, if they do not come with the texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    generator: Option<&'a Generator>,
    /// Non-members that are put before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    prefix: Option<&'a Texts>,
    /// Which tokens of the text count.
    #[serde(skip_serializing_if = "Option::is_none")]
    align: Option<Align>,
    /// Non-members that are put before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    non_members: Option<&'a Texts>,
    /// Members that are put before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<String>>)]
    members: Option<&'a Texts>,
    /// Weight of what members do.
    #[serde(skip_serializing_if = "Option::is_none")]
    gamma: Option<f64>,
    /// Tokens in a moving average.
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<usize>,
    /// Entropy below which the model is sure, in nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_entropy: Option<f64>,
    /// Name of the token counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<&'a str>,
    /// The most that a token contributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    a: Option<f64>,
}

impl<'a> Parameters<'a> {
    fn of(base: &'a Base) -> Parameters<'a> {
        let with = Parameters { k: base.k(), ..Parameters::default() };
        match base {
            Base::Ref { reference, .. } => Parameters { reference: Some(reference), ..with },
            Base::Neighbor { generator } => Parameters { generator: generator.as_ref(), ..with },
            Base::Recall { prefix, align } => Parameters { prefix: Some(prefix), align: Some(*align), ..with },
            Base::ConRecall { non_members, members, gamma } => {
                Parameters { non_members: Some(non_members), members: Some(members), gamma: Some(*gamma), ..with }
            }
            Base::GapK { window, .. } => Parameters { window: Some(*window), ..with },
            Base::Surp { max_entropy, .. } => Parameters { max_entropy: Some(*max_entropy), ..with },
            Base::DcPdd { counts, a } => Parameters { counts: Some(&counts.id), a: Some(*a), ..with },
            Base::Loss | Base::Zlib | Base::Lowercase | Base::MinK { .. } | Base::MinKPlusPlus { .. } => with,
        }
    }
}

fn note(base: &Base) -> Option<&'static str> {
    matches!(base, Base::Ref { reading: Reading::OwnIds, .. }).then_some(
        "the reference model has another tokenization: the difference of the two mean log-probabilities, each over \
         its own tokens",
    )
}

impl LabelledMethod {
    /// JSON pointer, relative to the list of methods, to a field that this was made from; of a preset, to its name.
    pub fn pointer(&self, field: &str) -> String {
        format!("/{}/{}", self.place, if self.of_preset { "preset" } else { field })
    }

    /// The texts that it puts before those to score, by the field of the request that holds them.
    pub fn texts_before(&self) -> Vec<(&'static str, &Texts)> {
        match &self.method.base {
            Base::Recall { prefix, .. } => vec![("prefix", prefix)],
            Base::ConRecall { non_members, members, .. } => vec![("non_members", non_members), ("members", members)],
            _ => Vec::new(),
        }
    }
}

impl Serialize for LabelledMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Echo {
            label: &self.label,
            name: self.method.name(),
            parameters: Parameters::of(&self.method.base),
            truncate: self.method.truncate,
            pdr: self.method.pdr.map(|pdr| Spelt { pdr, selects: self.method.name().selects_then_weights() }),
            extension: self.method.extension(),
            note: note(&self.method.base),
        }
        .serialize(serializer)
    }
}

impl PartialSchema for LabelledMethod {
    fn schema() -> RefOr<Schema> {
        Echo::schema()
    }
}

impl ToSchema for LabelledMethod {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        Echo::schemas(schemas);
    }
}
