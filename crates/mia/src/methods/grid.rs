//! A number, or a list of them to sweep over.

use super::fault::{Fault, Faults};
use crate::json::CappedList;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use utoipa::openapi::schema::{ArrayBuilder, KnownFormat, ObjectBuilder, OneOfBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Maximum number of methods of a request, sweeps and presets expanded.
pub const MAX_METHODS: usize = 256;

/// The fault of a list without values.
pub(super) const EMPTY: &str = "the list of values is empty";

/// The values of a parameter: one, or several that make a method each.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Grid {
    One(f64),
    /// A sweep over at least one value.
    Many(CappedList<f64, MAX_METHODS>),
}

impl Grid {
    /// The values, at most [`MAX_METHODS`], each with its place behind the parameter's own pointer: nothing or `/2`.
    pub(super) fn values(&self) -> Vec<(f64, String)> {
        match self {
            Grid::One(value) => vec![(*value, String::new())],
            Grid::Many(values) => {
                values.kept().iter().enumerate().map(|(index, v)| (*v, format!("/{index}"))).collect()
            }
        }
    }

    /// The checked values; `None` where there are none, or one is at fault. `pointer` is that of the parameter.
    pub(super) fn checked<T>(
        &self,
        pointer: &str,
        faults: &mut Faults,
        check: impl Fn(f64) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        if self.len() == 0 {
            faults.push(Fault::new(pointer, EMPTY));
            return None;
        }
        let checked = self.values().into_iter().map(|(value, below)| {
            faults.keep(check(value).map_err(|detail| Fault::new(format!("{pointer}{below}"), detail)))
        });
        // All of them are checked before the first that is at fault ends the list.
        checked.collect::<Vec<Option<T>>>().into_iter().collect()
    }

    /// Number of methods that it expands to.
    pub(super) fn len(&self) -> usize {
        match self {
            Grid::One(_) => 1,
            Grid::Many(values) => values.total(),
        }
    }
}

impl PartialSchema for Grid {
    fn schema() -> RefOr<Schema> {
        let double = || Some(SchemaFormat::KnownFormat(KnownFormat::Double));
        let number = || ObjectBuilder::new().schema_type(Type::Number).format(double());
        let list = ArrayBuilder::new().items(number()).description(Some("A sweep over at least one value."));
        OneOfBuilder::new()
            .item(number().description(Some("One value.")))
            .item(list)
            .description(Some("The values of a parameter: one, or several that make a method each."))
            .into()
    }
}

impl ToSchema for Grid {}

/// Written by hand, as for every value of several types: a derived untagged enum would not say what is wrong and where.
impl<'de> Deserialize<'de> for Grid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GridVisitor;

        impl<'de> Visitor<'de> for GridVisitor {
            type Value = Grid;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a list of numbers to sweep over")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Grid, E> {
                Ok(Grid::One(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Grid, E> {
                Ok(Grid::One(value as f64))
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Grid, E> {
                Ok(Grid::One(value as f64))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Grid, A::Error> {
                CappedList::deserialize(SeqAccessDeserializer::new(list)).map(Grid::Many)
            }
        }

        deserializer.deserialize_any(GridVisitor)
    }
}
