//! JSON representation of a problem.

use crate::wire::quoted;
use mia::methods::Fault;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use utoipa::ToSchema;

/// Maximum number of characters in the detail of a problem, which may repeat parts of the request.
const MOST_CHARS: usize = 2_000;

/// A text of a problem, cut where it is too long.
pub fn cut(text: String) -> String {
    match quoted(&text, MOST_CHARS) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cut) => cut,
    }
}

/// One fault of a request, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PointedFault {
    /// JSON pointer (RFC 6901) into the body; empty: the body itself, or a query parameter.
    #[schema(examples("/methods/1/k"))]
    pub pointer: String,
    /// The query parameter that the fault is in, where it is not in the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// The fault in words, with what was given and what is accepted.
    #[schema(examples("k is 1.5, outside (0, 1]"))]
    pub detail: String,
}

impl PointedFault {
    /// A fault of the body.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: cut(pointer.into()), parameter: None, detail: cut(detail.into()) }
    }

    /// A fault of a query parameter.
    pub fn of_parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { parameter: Some(cut(name.into())), ..Self::new("", detail) }
    }
}

/// A problem as it is sent.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Kind of problem; stable.
    #[serde(rename = "type")]
    #[schema(examples("urn:pdr-audit:problem:invalid-request"))]
    pub uri: String,
    /// The kind in words.
    #[schema(examples("The request is invalid"))]
    pub title: &'static str,
    /// The HTTP status.
    #[schema(examples(422))]
    pub status: u16,
    /// Fault.
    #[schema(examples("/methods/1/k: k is 1.5, outside (0, 1]"))]
    pub detail: String,
    /// Path of the request, or of the audit that failed.
    #[schema(examples("/v1/score"))]
    pub instance: String,
    /// Id of the request, as in the header `x-request-id` and in the service's log.
    #[schema(examples("0b8b1a0e-54c5-4a3c-9a4c-8f4b0f0c7a7e"))]
    pub request_id: String,
    /// The faults of an invalid request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<PointedFault>,
    #[serde(flatten)]
    #[schema(ignore)]
    pub extensions: Map<String, Value>,
}

impl From<Fault> for PointedFault {
    /// A fault of the list of methods, pointed at from the body.
    fn from(fault: Fault) -> Self {
        Self::new(format!("/methods{}", fault.pointer), fault.detail)
    }
}
