//! The records of a file, where they are in it, and why it cannot be read any further.

use serde_json::{Map, Value};

/// The named values of a record, in the order of the file.
pub type Fields = Map<String, Value>;

/// The records of a file. An error ends them.
pub type FileRecords = Box<dyn Iterator<Item = Result<Record, ReadError>> + Send>;

/// One record, or what is wrong with it alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it begins.
    pub place: RecordPlace,
    /// Amount of the file read up to the end of it, in the units of [`Input::size`](super::InputFile::size).
    pub position: u64,
    /// Its fields, or why it has none.
    pub fields: Result<Fields, String>,
}

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum RecordPlace {
    #[strum(to_string = "line {0}")]
    Line(u64),
    #[strum(to_string = "element {0}")]
    Element(u64),
    #[strum(to_string = "row {0}")]
    Row(u64),
}

/// A fault that ends the reading of a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The input is not what it is read as.
    #[error("{0}")]
    Unfit(String),
    /// The input holds text that is no record of any kind.
    #[error("it is plain text, and not a file of samples")]
    PlainText,
    /// A record cannot be read, nor what comes after it.
    #[error("{place}: {fault}")]
    Broken { place: RecordPlace, fault: String },
}
