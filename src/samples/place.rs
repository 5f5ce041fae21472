//! Places in files.

use std::fmt;

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    Line(u64),
    Element(u64),
    Row(u64),
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(number) => write!(formatter, "line {number}"),
            Self::Element(number) => write!(formatter, "element {number}"),
            Self::Row(number) => write!(formatter, "row {number}"),
        }
    }
}
