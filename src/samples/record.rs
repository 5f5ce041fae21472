//! One record of a file.

use super::error::ReadError;
use super::place::RecordPlace;
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
