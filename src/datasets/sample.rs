//! One text of a dataset or a job, as HTTP requests and files give it and as it is stored.

use super::column_text::ColumnText;
use crate::scorer::{Input, Spans};
use mia::json::at_most;
use mia::methods::MAX_NEIGHBORS;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;

/// Accepted values of a label.
const LABELS: &str = "0 or 1, true or false, \"member\" or \"non-member\"";

pub const MAX_GROUPS: usize = 256;

/// One text, labelled or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "an object with `text` or `messages`, and perhaps `id`, `label`, `group`, `document`, `context`, `spans`, `neighbors` and `columns`"
)]
#[schema(as = SampleRequest)]
pub struct Sample {
    /// Comes back with its scores; need not be unique.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<SampleId>,
    /// The text; `input` is accepted as another name of this field.
    #[serde(alias = "input")]
    pub text: String,
    /// 1 for a text that is known to be in the training data, 0 for one that is known not to be; `true` and `false`, `"1"` and
    /// `"0"`, `"member"` and `"non-member"` are understood as well. Present in all samples of an audit or in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u8>, minimum = 0, maximum = 1)]
    pub label: Option<Label>,
    /// Group that it is counted with, beside being counted with all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Id of the document that it is a part or a version of. Texts of one document are one cluster: they are drawn, permuted and
    /// split together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document: Option<SampleId>,
    /// Text before it, such as a prompt or a question: the model is given it, and it is not scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Parts of the text that are scored, `[start, end)` in characters (Unicode code points), in order and apart from each other; the
    /// whole text if left out. A token counts if it lies within a span, white space at its edges aside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spans: Option<Spans>,
    /// Texts that differ little from it, for the method `neighbor`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "at_most::<_, _, MAX_NEIGHBORS>")]
    #[schema(min_items = 1)]
    pub neighbors: Option<Vec<String>>,
    /// Anything else, by name; it comes back with the scores. At most 64 KiB.
    #[serde(default, skip_serializing_if = "ColumnText::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, serde_json::Value>, required = false)]
    pub columns: ColumnText,
}

/// The name that a client gives a text. It is returned as it was given: an integer stays an integer.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[serde(untagged)]
pub enum SampleId {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i128),
}

/// A number where 0 or 1 belongs. Any number is read, so that [`Sample::label_error`] can be asked for all samples of a
/// request, where a deserializer would stop at the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Label(f64);

impl Label {
    /// The label of a member of the training data.
    pub const MEMBER: Self = Self(1.0);
    /// The label of a text that is not in the training data.
    pub const NON_MEMBER: Self = Self(0.0);

    /// A label from a number, as a file holds it; `1.0` is `1`.
    #[must_use]
    pub const fn new(number: f64) -> Self {
        Self(number)
    }

    /// Returns true if the label is that of a member; `None` if it is neither 0 nor 1.
    #[must_use]
    pub fn is_member(self) -> Option<bool> {
        match self {
            Self::MEMBER => Some(true),
            Self::NON_MEMBER => Some(false),
            Self(_) => None,
        }
    }
}

impl Sample {
    /// The text for the scorer, without its id.
    #[must_use]
    pub fn into_input(self) -> Input {
        let Self { text, context, spans, neighbors, .. } = self;
        Input { id: None, text, context, spans, neighbors }
    }

    /// Returns the fault of the spans, in words; `None` if there is none.
    #[must_use]
    pub fn spans_error(&self) -> Option<String> {
        self.spans.as_ref()?.fault(&self.text)
    }

    /// Returns true if the text is in the training data; `None` if that is not known.
    #[must_use]
    pub fn is_member(&self) -> Option<bool> {
        self.label.and_then(Label::is_member)
    }

    /// Returns the fault of the label, in words; `None` if there is none.
    #[must_use]
    pub fn label_error(&self) -> Option<String> {
        let label = self.label.filter(|label| label.is_member().is_none())?;
        Some(format!("the label is {}; it must be {LABELS}", label.0))
    }
}

impl fmt::Display for SampleId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Integer(integer) => integer.fmt(formatter),
        }
    }
}

impl<'de> Deserialize<'de> for SampleId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting("a string or an integer")
            .string(|text| Ok(Self::Text(text.to_owned())))
            .i128(|integer| Ok(Self::Integer(integer)))
            .deserialize(deserializer)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(LABELS)
            .bool(|member| Ok(if member { Self::MEMBER } else { Self::NON_MEMBER }))
            .string(|text| text.parse().map_err(Error::custom))
            .f64(|number| Ok(Self(number)))
            .i64(|number| Ok(Self(number as f64)))
            .u64(|number| Ok(Self(number as f64)))
            .deserialize(deserializer)
    }
}

/// The ways in which files write a label: a number, `true`, `false`, `member`, `non-member`, in upper or lower case.
impl FromStr for Label {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let plain = text.trim().to_ascii_lowercase();
        match plain.as_str() {
            "true" | "member" => Ok(Self::MEMBER),
            "false" | "non-member" | "non_member" | "nonmember" => Ok(Self::NON_MEMBER),
            number => {
                let label = number.parse().map(Self).ok().filter(|label| label.is_member().is_some());
                label.ok_or_else(|| format!("the label is {text:?}; it must be {LABELS}"))
            }
        }
    }
}

/// The integers 0 and 1; any other number as it was given.
impl Serialize for Label {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.is_member() {
            Some(member) => serializer.serialize_u8(member.into()),
            None => serializer.serialize_f64(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_as_they_were_given() {
        for json in [r#""a""#, r#""7""#, "7", "-1", "18446744073709551615"] {
            let id: SampleId = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), json);
            assert_eq!(id.to_string(), json.trim_matches('"'));
        }
        for json in ["1.5", "true", "[]", "{}", "1e30"] {
            let error = serde_json::from_str::<SampleId>(json).unwrap_err().to_string();
            assert!(error.contains("expected a string or an integer"), "{json}: {error}");
        }
    }

    #[test]
    fn a_sample_survives_being_stored() {
        let json = r#"{"id":7,"text":"a","label":1,"group":"g","context":"c","spans":[[0,1]],"neighbors":["b"]}"#;
        let sample: Sample = serde_json::from_str(json).unwrap();
        assert_eq!(sample.is_member(), Some(true));
        assert_eq!(serde_json::to_string(&sample).unwrap(), json);
        let sample: Sample = serde_json::from_str(r#"{"input":"a","label":null}"#).unwrap();
        assert_eq!(serde_json::to_string(&sample).unwrap(), r#"{"text":"a"}"#);
        for bad in [r#"{}"#, r#"{"text":"a","input":"b"}"#, r#"{"text":"a","more":1}"#, r#"{"text":"a","id":[]}"#] {
            assert!(serde_json::from_str::<Sample>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn labels_are_zero_and_one_in_any_notation() {
        let member = |json: &str| serde_json::from_str::<Label>(json).unwrap().is_member();
        assert_eq!(
            (member("1"), member("1.0"), member("0"), member("-0.0")),
            (Some(true), Some(true), Some(false), Some(false))
        );
        let sample = |label| Sample { label: Some(Label::new(label)), ..Sample::default() };
        assert_eq!((sample(1.0).label_error(), sample(0.0).label_error()), (None, None));
        for label in [2.0, 0.5, -1.0, f64::NAN] {
            assert!(sample(label).label_error().unwrap().contains("it must be 0 or 1"));
        }
        for (json, expected) in [(r#""1""#, true), ("true", true), (r#""Non-Member""#, false), (r#"" 0.0 ""#, false)] {
            assert_eq!(member(json), Some(expected), "{json}");
        }
        for json in [r#""yes""#, r#""2""#, r#""NaN""#, "[1]", r#""""#] {
            assert!(serde_json::from_str::<Label>(json).is_err(), "{json}");
        }
    }
}
