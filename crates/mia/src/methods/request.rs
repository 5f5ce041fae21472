//! Methods as a client writes them.
//!
//! Only types are checked here. Names and ranges are checked by [`resolve`](super::resolve()), which can point at
//! every fault of a request at once where a deserialiser stops at the first.

use super::label_object::{label_object, split_outside};
use super::method_object::MethodObject;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

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

/// Methods as a command line writes them: a JSON array as in a request, one object of it, or names and labels separated by
/// commas.
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
        Ok(split_outside(list, ',').into_iter().map(|name| MethodRequest::named(name.trim())).collect())
    }
}
