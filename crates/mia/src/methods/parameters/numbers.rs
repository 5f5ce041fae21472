//! Parameters that are numbers.

use super::kind::{Parameter, ParameterKind, Place};
use super::value::{ParameterValue, ValueType};
use crate::methods::fault::Fault;
use crate::methods::grid::Grid;
use crate::methods::parameter_entry::{ParameterEntry, ParameterType};
use crate::methods::range::{Fraction, Range};
use crate::methods::schema_parts::{Schemas, schema_reference};
use serde_json::{Value, json};
use std::fmt::Debug;
use utoipa::PartialSchema;
use utoipa::openapi::{RefOr, Schema};

/// The share of tokens selected by Min-K% (Shi et al. 2024) and by the methods that follow it.
pub static K_FIFTH: Parameter<Share> = share_selected(Fraction::FIFTH);

/// The parameter `k`: the share of the tokens that a method selects.
pub const fn share_selected(default: Fraction) -> Parameter<Share> {
    Parameter {
        name: "k",
        kind: Share { default },
        summary: "Share of tokens to select, in (0, 1]; only for a method that selects.",
        description: "Share of the tokens that is selected; of equal values the earlier.",
    }
}

/// A share of the tokens, or a list of them to sweep over.
#[derive(Debug)]
pub struct Share {
    /// The value if none is given.
    pub default: Fraction,
}

impl ParameterKind for Share {
    type Value = Fraction;
    const VALUE_TYPE: ValueType = ValueType::Grid;

    fn read(&self, place: &Place) -> Result<Fraction, Fault> {
        let values = match place.value {
            None => return Ok(self.default),
            Some(ParameterValue::Grid(grid)) => grid.values(),
            Some(other) => return Err(place.wrong_type(other, "a number")),
        };
        match values.get(place.sweep) {
            None => Err(place.fault("the list of values is empty")),
            Some((value, below)) => Fraction::new(*value).ok_or_else(|| outside(place, below, value, &Fraction::RANGE)),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        ParameterEntry {
            sweep: true,
            default: Some(self.default.get().into()),
            range: Some(Fraction::RANGE),
            ..ParameterEntry::optional(name, ParameterType::Number, description)
        }
    }

    fn schema(&self, schemas: &mut Schemas) -> RefOr<Schema> {
        schema_reference::<Grid>(schemas)
    }
}

/// A number within a range.
#[derive(Debug)]
pub struct Number {
    pub range: Range,
    /// The value if none is given.
    pub default: f64,
}

impl ParameterKind for Number {
    type Value = f64;
    const VALUE_TYPE: ValueType = ValueType::Number;

    fn read(&self, place: &Place) -> Result<f64, Fault> {
        match place.value {
            None => Ok(self.default),
            Some(ParameterValue::Number(value)) if self.range.contains(*value) => Ok(*value),
            Some(ParameterValue::Number(value)) => Err(outside(place, "", value, &self.range)),
            Some(other) => Err(place.wrong_type(other, "a number")),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        let default = if self.default.fract() == 0.0 { json!(self.default as i64) } else { json!(self.default) };
        with_range(name, ParameterType::Number, description, default, self.range)
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        f64::schema()
    }
}

/// A whole number within a range.
#[derive(Debug)]
pub struct Integer {
    /// The smallest value accepted.
    pub minimum: usize,
    /// The largest value accepted.
    pub maximum: usize,
    /// The value if none is given.
    pub default: usize,
}

impl Integer {
    pub fn range(&self) -> Range {
        Range::between(self.minimum as f64, self.maximum as f64)
    }
}

impl ParameterKind for Integer {
    type Value = usize;
    const VALUE_TYPE: ValueType = ValueType::Integer;

    fn read(&self, place: &Place) -> Result<usize, Fault> {
        match place.value {
            None => Ok(self.default),
            Some(ParameterValue::Integer(value)) if (self.minimum..=self.maximum).contains(value) => Ok(*value),
            Some(ParameterValue::Integer(value)) => Err(outside(place, "", value, &self.range())),
            Some(other) => Err(place.wrong_type(other, "a whole number")),
        }
    }

    fn entry(&self, name: &'static str, description: &str) -> ParameterEntry {
        with_range(name, ParameterType::Integer, description, json!(self.default), self.range())
    }

    fn schema(&self, _: &mut Schemas) -> RefOr<Schema> {
        usize::schema()
    }
}

fn with_range(
    name: &'static str,
    kind: ParameterType,
    description: &str,
    default: Value,
    range: Range,
) -> ParameterEntry {
    ParameterEntry { default: Some(default), range: Some(range), ..ParameterEntry::optional(name, kind, description) }
}

/// A value outside of its range; `below` is what follows the pointer of the parameter.
fn outside(place: &Place, below: &str, value: &impl Debug, range: &Range) -> Fault {
    let detail = format!("{} is {value:?}, outside {range}", place.name);
    Fault::new(format!("{}{below}", place.pointer()), detail)
}
