//! A method under the label that its scores are reported by.

use super::method::{Method, MethodName};
use super::range::Fraction;
use super::weights::Pdr;
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
}

impl From<Method> for LabelledMethod {
    /// Under the label made from name and parameters.
    fn from(method: Method) -> LabelledMethod {
        LabelledMethod { label: method.label().into(), method }
    }
}

/// What is computed when a request names no methods: every method plain, then every method with linear decay.
pub fn default_methods() -> Vec<LabelledMethod> {
    [None, Some(Pdr::LINEAR)]
        .into_iter()
        .flat_map(|pdr| MethodName::ALL.map(|name| Method { pdr, ..Method::plain(name) }))
        .map(LabelledMethod::from)
        .collect()
}

/// A method as it was understood: every parameter, defaults included.
#[derive(Serialize, ToSchema)]
struct Echo<'a> {
    /// The key of this method's scores.
    label: &'a str,
    /// Name of the method.
    name: MethodName,
    /// Share of tokens selected, for a method that selects.
    #[serde(skip_serializing_if = "Option::is_none")]
    k: Option<Fraction>,
    /// First share of the scored tokens, if the rest is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncate: Option<Fraction>,
    /// Positional decay, if there is any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pdr: Option<Pdr>,
    /// `true` where the combination goes beyond the PDR paper, else absent.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    extension: bool,
}

impl Serialize for LabelledMethod {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Echo {
            label: &self.label,
            name: self.method.base.name(),
            k: self.method.base.k(),
            truncate: self.method.truncate,
            pdr: self.method.pdr,
            extension: self.method.extension(),
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
