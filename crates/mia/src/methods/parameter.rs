//! The parameters of methods as data: what a request may give each of them, what is refused, and what the catalogue tells.
//!
//! A method's file declares its parameters, each once, as a [`Parameter`].

use super::fault::Fault;
use super::range::{Fraction, Range};
use super::scope::Place;
use super::value::{MAX_PREFIX_TEXTS, ParameterValue, ValueType};
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt::Debug;
use utoipa::ToSchema;

/// The largest seed of [`ParameterKind::Seed`]: every whole number up to it is a number of JSON.
const LARGEST_SEED: f64 = 9_007_199_254_740_991.0;

/// The share of tokens selected by Min-K% (Shi et al. 2024) and by the methods that follow it.
pub static K_FIFTH: Parameter = share_selected(Fraction::FIFTH);

/// The parameter `k`: the share of the tokens that a method selects.
pub const fn share_selected(default: Fraction) -> Parameter {
    Parameter {
        name: "k",
        kind: ParameterKind::Number { value_type: ValueType::Grid, range: Fraction::RANGE, default: default.get() },
        description: "Share of the tokens that is selected, in (0, 1]; of equal values the earlier.",
    }
}

/// A parameter of a method.
#[derive(Debug)]
pub struct Parameter {
    /// Field of the request, and of the method that is read from it.
    pub name: &'static str,
    pub kind: ParameterKind,
    /// Effect of the parameter, for the catalogue and the OpenAPI document.
    pub description: &'static str,
}

/// The type of a parameter, the values that it accepts and its default.
#[derive(Debug)]
pub enum ParameterKind {
    /// A number within a range. Of type [`ValueType::Grid`] it may be a list to sweep over.
    Number { value_type: ValueType, range: Range, default: f64 },
    /// One of these names; the first if none is given.
    Choice(&'static [&'static str]),
    /// A whole number, or a list of them to sweep over. It may be left out.
    Seed,
    /// Texts that are put before the text to score. They must be given.
    PrefixTexts,
    /// A value that the method's file checks.
    Checked {
        value_type: ValueType,
        required: bool,
        range: Option<Range>,
        /// Returns the value that the method is read from; `None` where it has none.
        read: fn(&Place) -> Result<Option<Value>, Fault>,
    },
}

impl Parameter {
    /// The JSON type of its value in a request.
    pub fn value_type(&self) -> ValueType {
        match self.kind {
            ParameterKind::Number { value_type, .. } | ParameterKind::Checked { value_type, .. } => value_type,
            ParameterKind::Choice(_) => ValueType::String,
            ParameterKind::Seed => ValueType::Grid,
            ParameterKind::PrefixTexts => ValueType::Strings,
        }
    }

    /// The value that the method is read from: the one given, or the default; `None` where there is neither.
    pub fn read(&self, place: &Place) -> Result<Option<Value>, Fault> {
        let given = place.given.get(self.name);
        match (&self.kind, given) {
            (ParameterKind::Checked { read, .. }, _) => read(place),
            (ParameterKind::PrefixTexts, None) => {
                Err(place.fault(self.name, format!("missing field `{}`: texts to put before the text", self.name)))
            }
            (_, None) => Ok(self.default()),
            (ParameterKind::Number { range, .. }, Some(ParameterValue::Grid(grid))) => {
                let (number, pointer) = place.swept(self.name, grid)?;
                self.within(number, number, range, pointer)
            }
            (ParameterKind::Number { range, .. }, Some(ParameterValue::Number(number))) => {
                self.within(*number, *number, range, place.pointer(self.name))
            }
            (ParameterKind::Number { range, .. }, Some(ParameterValue::Integer(number))) => {
                self.within(*number, *number as f64, range, place.pointer(self.name))
            }
            (ParameterKind::Choice(names), Some(ParameterValue::String(name))) => {
                match names.contains(&name.as_str()) {
                    true => Ok(Some(json!(name))),
                    false => Err(Fault::unknown(self.name, name, *names, place.pointer(self.name))),
                }
            }
            (ParameterKind::Seed, Some(ParameterValue::Grid(grid))) => {
                let (seed, pointer) = place.swept(self.name, grid)?;
                if (0.0..=LARGEST_SEED).contains(&seed) && seed.fract() == 0.0 {
                    return Ok(Some(json!(seed as u64)));
                }
                let detail = format!("{} is {seed:?}, which is not a whole number from 0 to {LARGEST_SEED}", self.name);
                Err(Fault::new(pointer, detail))
            }
            (ParameterKind::PrefixTexts, Some(ParameterValue::Strings(texts))) => {
                let total = texts.total();
                if !(1..=MAX_PREFIX_TEXTS).contains(&total) {
                    let detail = format!("there are {total} texts; there must be 1 to {MAX_PREFIX_TEXTS}");
                    return Err(place.fault(self.name, detail));
                }
                match texts.kept().iter().position(String::is_empty) {
                    Some(empty) => Err(place.fault(&format!("{}/{empty}", self.name), "the text is empty")),
                    None => Ok(Some(json!(texts))),
                }
            }
            (_, Some(other)) => {
                Err(place.fault(self.name, format!("{} is {other}, which is of another type", self.name)))
            }
        }
    }

    /// The value as JSON, if its `number` is inside the range.
    fn within(
        &self,
        value: impl Serialize + Debug,
        number: f64,
        range: &Range,
        pointer: String,
    ) -> Result<Option<Value>, Fault> {
        match range.contains(number) {
            true => Ok(Some(json!(value))),
            false => Err(Fault::new(pointer, format!("{} is {value:?}, outside {range}", self.name))),
        }
    }

    fn default(&self) -> Option<Value> {
        match self.kind {
            ParameterKind::Number { value_type: ValueType::Integer, default, .. } => Some(json!(default as usize)),
            ParameterKind::Number { default, .. } => Some(json!(default)),
            ParameterKind::Choice(names) => names.first().map(|name| json!(name)),
            ParameterKind::Seed | ParameterKind::PrefixTexts | ParameterKind::Checked { .. } => None,
        }
    }

    /// Returns its entry in the catalogue.
    pub fn entry(&self) -> ParameterEntry {
        let default = self.default().map(|default| match default.as_f64() {
            Some(number) if number.fract() == 0.0 => json!(number as i64),
            _ => default,
        });
        let json_type = match self.value_type() {
            ValueType::Grid if matches!(self.kind, ParameterKind::Seed) => ParameterType::Integer,
            ValueType::Grid | ValueType::Number => ParameterType::Number,
            ValueType::Integer => ParameterType::Integer,
            ValueType::String => ParameterType::String,
            ValueType::Strings => ParameterType::Strings,
            ValueType::Generator | ValueType::TunedScore => ParameterType::Object,
        };
        let entry = ParameterEntry {
            sweep: self.value_type() == ValueType::Grid,
            default,
            ..ParameterEntry::optional(self.name, json_type, self.description)
        };
        match self.kind {
            ParameterKind::Number { range, .. } => ParameterEntry { range: Some(range), ..entry },
            ParameterKind::Choice(names) => {
                ParameterEntry { values: Some(names.iter().map(|name| json!(name)).collect()), ..entry }
            }
            ParameterKind::Seed => entry,
            ParameterKind::PrefixTexts => ParameterEntry { required: true, ..entry },
            ParameterKind::Checked { required, range, .. } => ParameterEntry { required, range, ..entry },
        }
    }
}

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
    pub default: Option<Value>,
    /// Values accepted, for a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<Range>,
    /// Values accepted, for one of a few.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Vec<Value>>,
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
