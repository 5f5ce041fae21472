//! Files of samples: NDJSON, a JSON array, CSV and its relatives, Parquet; plain or compressed with gzip or zstd.
//!
//! A file is read as [`Record`]s, one after another and in bounded memory. A record is an object of named fields, whatever the
//! file is. [`ColumnNames`] say which of its fields are the text, the label and the id; the others come along as they are.
//!
//! Invariants:
//!
//! - nothing is skipped: each record is a sample or has a fault that names its place;
//! - a file that is not what it seems to be is refused with what was found in it and what to do.

mod columns;
mod csv_file;
mod dataset;
mod detection;
mod error;
mod input;
mod json_array;
mod kind;
mod ndjson;
mod options;
mod paired;
mod parquet_file;
mod peek;
mod place;
mod read;
mod record;
mod series;
#[cfg(test)]
mod tests;
mod words;

pub use columns::{BadRecord, ColumnNames, FileSample};
pub use dataset::{DatasetFault, DatasetOptions, encode_dataset};
pub use error::ReadError;
pub use input::InputFile;
pub use kind::FileKind;
pub use options::ReadOptions;
pub use place::RecordPlace;
pub use read::records;
pub use record::{Fields, FileRecords, Record};
pub use series::records_of_files;
pub use words::first_words;
