//! Methods as a client writes them.
//!
//! Only types are checked here. Names and ranges are checked by [`resolve`](super::resolve()), which can point at
//! every fault of a request at once where a deserialiser stops at the first.

use super::base::Align;
use super::grid::Grid;
use super::pdr::Select;
use crate::wire::object_or_null;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A method: its name alone, which takes that method's defaults, or an object with parameters.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum MethodRequest {
    /// Name of the method.
    #[schema(examples("min_k"))]
    Name(String),
    /// Name and parameters, or a preset.
    Object(Box<MethodObject>),
}

/// A method with parameters, or a preset. `k` and `pdr.alpha` may be lists: then each combination is a method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MethodObject {
    /// Name of the method. Every object has it, or `preset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("min_k_plus_plus"))]
    pub name: Option<String>,
    /// Share of tokens to select, in (0, 1]; only for a method that selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples(0.2))]
    pub k: Option<Grid>,
    /// Look at this first share of the scored tokens only, in (0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate: Option<f64>,
    /// Weights by position or entropy.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub pdr: Option<PdrRequest>,
    /// The key of this method's scores; made from name and parameters if not given. A sweep adds what it varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `ref`: id of the reference model; the one that the settings give the model if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// `neighbor`: what makes the neighbours; they come with the texts if left out.
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "object_or_null")]
    pub generator: Option<GeneratorRequest>,
    /// `recall`: non-members that are put before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Vec<String>>,
    /// `recall`: which tokens count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub align: Option<Align>,
    /// `con_recall`: non-members that are put before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub non_members: Option<Vec<String>>,
    /// `con_recall`: members that are put before the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub members: Option<Vec<String>>,
    /// `con_recall`: weight of what members do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gamma: Option<f64>,
    /// `gap_k`: tokens in a moving average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<usize>,
    /// `surp`: the model is sure below this entropy, in nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_entropy: Option<f64>,
    /// `dc_pdd`: name of the token counts; may be left out where the settings have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<String>,
    /// `dc_pdd`: the most that a token contributes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    /// Many methods at once, with the parameters that a paper gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("paper_wikimia"))]
    pub preset: Option<String>,
    /// `paper_wikimia`: length of the texts in words, 32, 64 or 128, by which the paper chose its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
}

/// Weights by position or entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PdrRequest {
    /// Name of the decay, or of an ablation.
    #[schema(examples("linear"))]
    pub decay: String,
    /// How fast the weights fall; its range depends on the decay, and ablations by entropy or slope take none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples(1.0))]
    pub alpha: Option<Grid>,
    /// `reverse` and `random`: whose weights they reorder; linear if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples("linear"))]
    pub family: Option<String>,
    /// `random`: the same seed gives a text the same order; 0 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether a method that selects does so by the raw values (`after`) or by the weighted ones (`before`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub select: Option<Select>,
    /// Divide by the sum of the weights instead of the number of tokens.
    #[serde(default)]
    pub normalize: bool,
}

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorRequest {
    /// Id of the masked model.
    pub model: String,
    /// The most neighbours of a text; 25 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}

/// Written by hand because an untagged enum would answer every mistake with "data did not match any variant"
/// and hide where in the object it is.
impl<'de> Deserialize<'de> for MethodRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RequestVisitor;

        impl<'de> Visitor<'de> for RequestVisitor {
            type Value = MethodRequest;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a method: its name, or an object with `name` and parameters, or with `preset`")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<MethodRequest, E> {
                Ok(MethodRequest::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MethodRequest, A::Error> {
                MethodObject::deserialize(MapAccessDeserializer::new(map)).map(|o| MethodRequest::Object(Box::new(o)))
            }
        }

        deserializer.deserialize_any(RequestVisitor)
    }
}

/// Methods as a command line writes them: a JSON array as in a request, one object of it, or names separated by commas.
///
/// # Errors
///
/// A list that starts with `[` or `{` and is no JSON of methods.
pub fn parse_list(list: &str) -> Result<Vec<MethodRequest>, serde_json::Error> {
    let list = list.trim();
    if list.starts_with('[') {
        serde_json::from_str(list)
    } else if list.starts_with('{') {
        serde_json::from_str(list).map(|one| vec![one])
    } else {
        Ok(list.split(',').map(|name| MethodRequest::Name(name.trim().to_owned())).collect())
    }
}
