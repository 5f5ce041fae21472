//! Options for reading a file.

use super::columns::ColumnNames;
use super::kind::FileKind;

/// Options for reading a file.
#[derive(Clone, Debug, Default)]
pub struct ReadOptions {
    /// Kind of the file; `None` to detect it.
    pub kind: Option<FileKind>,
    /// Delimiter of CSV; `None` to detect it.
    pub delimiter: Option<u8>,
    /// Which fields are what.
    pub columns: ColumnNames,
    /// Maximum size of a record of NDJSON, of a JSON array or of CSV, in bytes; `None` for no limit.
    pub limit: Option<u64>,
}
