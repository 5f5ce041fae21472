//! The values of parameters as a client writes them: JSON types are checked here, ranges and names are not.

use super::grid::Grid;
use super::pdr::PdrRequest;
use crate::json::{CappedList, object_or_null};
use serde::de::DeserializeSeed;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use strum::EnumDiscriminants;
use utoipa::ToSchema;

/// Maximum number of texts of one prefix.
pub const MAX_PREFIX_TEXTS: usize = 256;

/// The parameters that a request gives a method, by name.
pub type GivenParameters = BTreeMap<&'static str, ParameterValue>;

/// The value of a parameter, one of a [`ValueType`].
#[derive(Clone, Debug, PartialEq, Serialize, EnumDiscriminants)]
#[serde(untagged)]
#[strum_discriminants(name(ValueType))]
pub enum ParameterValue {
    /// A number, or a list of them to sweep over.
    Grid(Grid),
    Number(f64),
    Integer(usize),
    String(String),
    Strings(CappedList<String, MAX_PREFIX_TEXTS>),
    Generator(GeneratorRequest),
    /// An object that names the score that is compared.
    TunedScore(TunedScoreRequest),
}

/// Repeats a value in a fault; of a list only the length.
impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterValue::Grid(Grid::One(value)) | ParameterValue::Number(value) => write!(f, "{value:?}"),
            ParameterValue::Grid(Grid::Many(values)) => write!(f, "a list of {}", values.total()),
            ParameterValue::Integer(value) => write!(f, "{value}"),
            ParameterValue::String(value) => f.write_str(value),
            ParameterValue::Strings(values) => write!(f, "a list of {}", values.total()),
            ParameterValue::Generator(generator) => f.write_str(&generator.model),
            ParameterValue::TunedScore(score) => f.write_str(&score.name),
        }
    }
}

/// Reads a value of the type, or null for a parameter that is not given.
impl<'de> DeserializeSeed<'de> for ValueType {
    type Value = Option<ParameterValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        Ok(match self {
            ValueType::Grid => Option::deserialize(deserializer)?.map(ParameterValue::Grid),
            ValueType::Number => Option::deserialize(deserializer)?.map(ParameterValue::Number),
            ValueType::Integer => Option::deserialize(deserializer)?.map(ParameterValue::Integer),
            ValueType::String => Option::deserialize(deserializer)?.map(ParameterValue::String),
            ValueType::Strings => Option::deserialize(deserializer)?.map(ParameterValue::Strings),
            ValueType::Generator => object_or_null(deserializer)?.map(ParameterValue::Generator),
            ValueType::TunedScore => object_or_null(deserializer)?.map(ParameterValue::TunedScore),
        })
    }
}

/// A score of a text under one model, as a request names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TunedScoreRequest {
    /// `loss`, `min_k` or `min_k_plus_plus`.
    #[schema(examples("min_k"))]
    pub name: String,
    /// Share of tokens to select, in (0, 1]; 0.2 if left out. Not for `loss`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub k: Option<f64>,
    /// Weights by position or entropy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdr: Option<PdrRequest>,
}

/// A masked model that makes neighbours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GeneratorRequest {
    /// Id of the masked model.
    pub model: String,
    /// Maximum number of neighbours of a text; 25 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<usize>,
}
