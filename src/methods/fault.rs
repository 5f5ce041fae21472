//! What is wrong with a request's methods.

use serde::Serialize;
use utoipa::ToSchema;

/// One fault of a request, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Fault {
    /// JSON pointer (RFC 6901), relative to the list of methods: `/0/pdr/alpha`. Empty: the list itself.
    pub pointer: String,
    /// The fault, the value given and the values accepted.
    pub detail: String,
}

impl Fault {
    pub(super) fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Fault {
        Fault { pointer: pointer.into(), detail: detail.into() }
    }
}
