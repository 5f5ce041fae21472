//! The kinds of files.

use strum::{EnumString, IntoStaticStr, VariantNames};

/// A kind of file that holds samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "snake_case")]
pub enum FileKind {
    /// A JSON object a line.
    Ndjson,
    /// A JSON array of objects.
    Json,
    /// A table with a header, its columns separated by commas or something else.
    Csv,
    Parquet,
}
