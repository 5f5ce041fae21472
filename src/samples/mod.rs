//! Files of samples: NDJSON, a JSON array, CSV and its relatives, Parquet; plain or compressed with gzip or zstd. Documents,
//! such as plain text, EPUB or an archive, are read as samples, too: their passages.
//!
//! A file is read as [`Record`]s, one after another and in bounded memory. A record is an object of named fields, whatever the
//! file is. [`ColumnNames`] say which of its fields are the text, the label and the id; the others come along as they are.
//!
//! Invariants:
//!
//! - nothing is skipped: each record is a sample or has a fault that names its place;
//! - a file that is not what it seems to be is refused with what was found in it and what to do.

mod chat;
mod columns;
mod csv_file;
mod dataset;
mod input;
mod json;
mod paired;
mod parquet_file;
mod parquet_process;
mod passages;
mod read;
mod record;
#[cfg(test)]
mod tests;

pub use chat::{ChatRenderer, NAMED_BY_COMMAND};
pub use columns::{BadRecord, ColumnNames, FileKind, FileSample, ParquetProcess, ReadOptions};
pub use dataset::{DatasetFault, DatasetOptions, encode_dataset, first_words};
pub use input::InputFile;
pub use parquet_process::print_rows as print_parquet_rows;
pub use passages::{CutSampleError, cut_sample, records_of_documents};
pub use read::{records, records_of_files};
pub use record::{Fields, FileRecords, PassageReport, ReadError, Record, RecordPlace};
