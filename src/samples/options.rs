//! How a file is read.

use super::columns::ColumnNames;
use super::kind::FileKind;

/// How a file is read.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// What kind of file it is; none to find out.
    pub kind: Option<FileKind>,
    /// What separates the columns of CSV; none to find out.
    pub delimiter: Option<u8>,
    /// Which fields are what.
    pub columns: ColumnNames,
    /// The most bytes of a record of NDJSON, of a JSON array or of CSV; none for any number.
    pub limit: Option<u64>,
}
