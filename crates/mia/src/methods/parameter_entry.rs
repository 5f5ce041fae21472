//! The parameters as clients are told of them.

use super::range::Range;
use serde::Serialize;
use utoipa::ToSchema;

/// One parameter.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = Parameter)]
pub struct ParameterEntry {
    /// Field of the request.
    pub name: &'static str,
    /// JSON type.
    #[serde(rename = "type")]
    pub kind: ParameterType,
    /// True if it is required.
    pub required: bool,
    /// True if it may be a list, which makes a method for each of its values.
    pub sweep: bool,
    /// Default; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<serde_json::Value>,
    /// Values accepted, for a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// Values accepted, for one of a few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<serde_json::Value>>,
    /// Effect.
    pub description: String,
}

/// JSON type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ParameterType {
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// A string.
    String,
    /// A list of strings.
    Strings,
    /// True or false.
    Boolean,
    /// An object.
    Object,
}

impl ParameterEntry {
    /// A parameter that need not be given and has no default.
    pub fn optional(name: &'static str, kind: ParameterType, description: impl Into<String>) -> ParameterEntry {
        ParameterEntry {
            name,
            kind,
            required: false,
            sweep: false,
            default: None,
            range: None,
            values: None,
            description: description.into(),
        }
    }
}
