//! Methods as a client writes them.
//!
//! Only types are checked here. Names and ranges are checked by [`resolve`](super::resolve()), which can point at
//! every fault of a request at once where a deserialiser stops at the first.

use super::grid::Grid;
use super::label_object::{label_object, split_outside};
use super::parameter::Parameter;
use super::pdr::PdrRequest;
use super::registry::MethodName;
use super::value::GivenParameters;
use crate::json::Object;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::HashSet;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};
use utoipa::ToSchema;

/// A method: its name alone, which takes that method's defaults, the label that it has by default, or an object with
/// parameters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum MethodRequest {
    Name(String),
    /// Name and parameters, or a preset.
    Object(Box<MethodObject>),
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
                Ok(MethodRequest::named(name))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MethodRequest, A::Error> {
                MethodObject::deserialize(MapAccessDeserializer::new(map)).map(|o| MethodRequest::Object(Box::new(o)))
            }
        }

        deserializer.deserialize_any(RequestVisitor)
    }
}

impl MethodRequest {
    /// The method of a name, or of a label as reports print it.
    fn named(text: &str) -> Self {
        let object = label_object(text).and_then(|object| serde_json::from_value(object).ok());
        object.map_or_else(|| Self::Name(text.to_owned()), Self::Object)
    }
}

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

/// Written by hand because the fields are those that the methods declare: each is read as the JSON type of its parameter.
impl<'de> Deserialize<'de> for MethodObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = MethodObject;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object with `name` and parameters, or with `preset`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MethodObject, A::Error> {
                let mut object = MethodObject::default();
                let mut read = HashSet::new();
                while let Some(field) = map.next_key::<Field>()? {
                    if !read.insert(field.name()) {
                        return Err(A::Error::duplicate_field(field.name()));
                    }
                    match field {
                        Field::Parameter(parameter) => {
                            if let Some(value) = map.next_value_seed(parameter.value_type())? {
                                object.parameters.insert(parameter.name, value);
                            }
                        }
                        Field::Common(CommonField::Name) => object.name = map.next_value()?,
                        Field::Common(CommonField::Truncate) => object.truncate = map.next_value()?,
                        Field::Common(CommonField::Label) => object.label = map.next_value()?,
                        Field::Common(CommonField::Preset) => object.preset = map.next_value()?,
                        Field::Common(CommonField::Length) => object.length = map.next_value()?,
                        Field::Common(CommonField::Pdr) => {
                            object.pdr = map.next_value::<Option<Object<PdrRequest>>>()?.map(|Object(pdr)| pdr);
                        }
                    }
                }
                Ok(object)
            }
        }

        deserializer.deserialize_map(ObjectVisitor)
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

/// A field of a [`MethodObject`]. An unknown one is refused while its name is read, so that the error points at it.
#[derive(Deserialize)]
#[serde(try_from = "String")]
enum Field {
    Common(CommonField),
    Parameter(&'static Parameter),
}

impl Field {
    fn name(&self) -> &'static str {
        match self {
            Field::Common(field) => field.into(),
            Field::Parameter(parameter) => parameter.name,
        }
    }
}

impl TryFrom<String> for Field {
    type Error = String;

    fn try_from(name: String) -> Result<Field, String> {
        if let Ok(field) = name.parse() {
            return Ok(Field::Common(field));
        }
        let parameters = all_parameters();
        if let Some(parameter) = parameters.iter().find(|parameter| parameter.name == name) {
            return Ok(Field::Parameter(parameter));
        }
        let known = CommonField::VARIANTS.iter().copied().chain(parameters.iter().map(|parameter| parameter.name));
        let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
        Err(format!("unknown field `{name}`, expected one of {}", known.join(", ")))
    }
}

/// The parameters of all methods, each name once, in the order of the methods.
pub(super) fn all_parameters() -> Vec<&'static Parameter> {
    let mut all: Vec<&'static Parameter> = Vec::new();
    for parameter in MethodName::VARIANTS.iter().flat_map(|name| name.definition().parameters) {
        if all.iter().all(|known| known.name != parameter.name) {
            all.push(parameter);
        }
    }
    all
}

/// Methods as a command line writes them: a JSON array as in a request, one object of it, or names and labels separated by
/// commas.
pub fn parse_list(list: &str) -> Result<Vec<MethodRequest>, serde_json::Error> {
    let list = list.trim();
    if list.starts_with('[') {
        serde_json::from_str(list)
    } else if list.starts_with('{') {
        serde_json::from_str(list).map(|one| vec![one])
    } else {
        Ok(split_outside(list, ',').into_iter().map(|name| MethodRequest::named(name.trim())).collect())
    }
}
