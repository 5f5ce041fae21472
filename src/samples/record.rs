//! One record of a file.

use super::error::ReadError;
use serde_json::{Map, Value};
use std::fmt;

/// The named values of a record, in the order of the file.
pub type Fields = Map<String, Value>;

/// The records of a file. An error ends them.
pub type Records = Box<dyn Iterator<Item = Result<Record, ReadError>> + Send>;

/// One record, or what is wrong with it alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it begins.
    pub place: Place,
    /// How much of the file was read with it and all before it, in the units of [`Input::size`](super::Input::size).
    pub position: u64,
    /// Its fields, or why it has none.
    pub fields: Result<Fields, String>,
}

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text.
    Line(u64),
    /// An element of an array.
    Element(u64),
    /// A row of a table.
    Row(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(formatter, "line {number}"),
            Self::Element(number) => write!(formatter, "element {number}"),
            Self::Row(number) => write!(formatter, "row {number}"),
        }
    }
}
