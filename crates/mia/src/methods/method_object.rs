//! A method with parameters as a client writes it: one JSON object.
//!
//! Its fields are those that all methods have and the parameters that the methods declare. Which of them go together is
//! checked when the request is resolved.

use super::grid::Grid;
use super::parameters::{AnyParameter, GivenParameters};
use super::pdr::PdrRequest;
use super::registry::MethodName;
use crate::json::Object;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::HashSet;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};
use utoipa::ToSchema;

/// A method with parameters, or a preset. `k`, `truncate` and `pdr.alpha` may be lists: then each combination is a method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MethodObject {
    /// Name of the method. Every object has it, or `preset`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("min_k_plus_plus"))]
    pub name: Option<String>,
    /// Share of the scored tokens that count, from the first, in (0, 1].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate: Option<Grid>,
    /// Weights by position or entropy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdr: Option<PdrRequest>,
    /// The key of this method's scores; made from name and parameters if not given. A sweep adds what it varies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Many methods at once, with the parameters that a paper gives them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("paper_wikimia"))]
    pub preset: Option<String>,
    /// `paper_wikimia` and `paper_ablation`: length of the texts in words, 32, 64 or 128, by which the paper chose its parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<usize>,
    /// The parameters of the method itself.
    #[serde(flatten)]
    #[schema(ignore)]
    pub parameters: GivenParameters,
}

/// The parameters of all methods, each name once, in the order of the methods.
pub(super) fn all_parameters() -> Vec<&'static dyn AnyParameter> {
    let mut all: Vec<&'static dyn AnyParameter> = Vec::new();
    for parameter in MethodName::VARIANTS.iter().flat_map(|name| name.definition().parameters) {
        if all.iter().all(|known| known.name() != parameter.name()) {
            all.push(*parameter);
        }
    }
    all
}

/// Written by hand because the fields are those that the methods declare: each is read as the JSON type of its parameter.
impl<'de> Deserialize<'de> for MethodObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = MethodObject;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object with `name` and parameters, or with `preset`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MethodObject, A::Error> {
        let mut object = MethodObject::default();
        let mut read = HashSet::new();
        while let Some(field) = map.next_key_seed(FieldSeed)? {
            if !read.insert(field.name()) {
                return Err(A::Error::duplicate_field(field.name()));
            }
            match field {
                Field::Common(CommonField::Name) => object.name = map.next_value()?,
                Field::Common(CommonField::Truncate) => object.truncate = map.next_value()?,
                Field::Common(CommonField::Pdr) => {
                    object.pdr = map.next_value::<Option<Object<PdrRequest>>>()?.map(|Object(pdr)| pdr);
                }
                Field::Common(CommonField::Label) => object.label = map.next_value()?,
                Field::Common(CommonField::Preset) => object.preset = map.next_value()?,
                Field::Common(CommonField::Length) => object.length = map.next_value()?,
                Field::Parameter(parameter) => {
                    if let Some(value) = map.next_value_seed(parameter.value_type())? {
                        object.parameters.insert(parameter.name(), value);
                    }
                }
            }
        }
        Ok(object)
    }
}

/// The fields that are no parameter of a method.
#[derive(Clone, Copy, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
enum CommonField {
    Name,
    Truncate,
    Pdr,
    Label,
    Preset,
    Length,
}

/// A field of a [`MethodObject`].
enum Field {
    Common(CommonField),
    Parameter(&'static dyn AnyParameter),
}

impl Field {
    fn name(&self) -> &'static str {
        match self {
            Field::Common(field) => field.into(),
            Field::Parameter(parameter) => parameter.name(),
        }
    }
}

/// Reads the name of a field. The error for an unknown one is made here so that it points at the field.
struct FieldSeed;

impl<'de> DeserializeSeed<'de> for FieldSeed {
    type Value = Field;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Field, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldSeed {
    type Value = Field;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Field, E> {
        if let Ok(field) = name.parse() {
            return Ok(Field::Common(field));
        }
        let parameters = all_parameters();
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.name() == name) {
            return Ok(Field::Parameter(*parameter));
        }
        let known = CommonField::VARIANTS.iter().copied().chain(parameters.iter().map(|parameter| parameter.name()));
        let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
        Err(E::custom(format!("unknown field `{name}`, expected one of {}", known.join(", "))))
    }
}
