//! Methods as a client writes them.
//!
//! Only types are checked here. Names and ranges are checked by [`resolve`](super::resolve()), which can point at
//! every fault of a request at once where a deserialiser stops at the first.

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
    /// Name and parameters.
    Object(MethodObject),
}

/// A method with parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct MethodObject {
    /// Name of the method.
    #[schema(examples("min_k_plus_plus"))]
    pub name: String,
    /// Share of tokens to select, in (0, 1]; only for a method that selects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(examples(0.2))]
    pub k: Option<f64>,
    /// Look at this first share of the scored tokens only, in (0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truncate: Option<f64>,
    /// Positional decay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pdr: Option<PdrRequest>,
    /// The key of this method's scores; made from name and parameters if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Positional decay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PdrRequest {
    /// Name of the decay.
    #[schema(examples("linear"))]
    pub decay: String,
    /// How fast the weights fall; required, and its range depends on the decay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = true, nullable = false, examples(1.0))]
    pub alpha: Option<f64>,
    /// Divide by the sum of the weights instead of the number of tokens.
    #[serde(default)]
    pub normalize: bool,
}

/// Written by hand because an untagged enum would answer every mistake with "data did not match any variant"
/// and hide where in the object it is.
impl<'de> Deserialize<'de> for MethodRequest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RequestVisitor;

        impl<'de> Visitor<'de> for RequestVisitor {
            type Value = MethodRequest;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a method: its name, or an object with `name` and parameters")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<MethodRequest, E> {
                Ok(MethodRequest::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MethodRequest, A::Error> {
                MethodObject::deserialize(MapAccessDeserializer::new(map)).map(MethodRequest::Object)
            }
        }

        deserializer.deserialize_any(RequestVisitor)
    }
}

/// Methods as a command line writes them: a JSON array as in a request, or names separated by commas.
///
/// # Errors
///
/// A list that starts with `[` and is no JSON array of methods.
pub fn parse_list(list: &str) -> Result<Vec<MethodRequest>, serde_json::Error> {
    let list = list.trim();
    if list.starts_with('[') {
        serde_json::from_str(list)
    } else {
        Ok(list.split(',').map(|name| MethodRequest::Name(name.trim().to_owned())).collect())
    }
}
