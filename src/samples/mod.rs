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
mod error;
mod input;
mod json_array;
mod kind;
mod ndjson;
mod paired;
mod parquet_file;
mod peek;
mod place;
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
pub use place::RecordPlace;
pub use record::{Fields, FileRecords, Record};
pub use series::records_of_files;
pub use words::first_words;

use paired::SplitRecord;

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

/// The records of an input, from its beginning; one for each text where it has members and non-members in columns of their own.
///
/// # Errors
/// Where the input is no file of samples: not UTF-8, no column of texts, or damaged. What is wrong later is an item of the iterator.
pub fn records(mut input: InputFile, options: &ReadOptions) -> Result<FileRecords, ReadError> {
    let kind = match options.kind {
        Some(kind) => kind,
        None => kind::detect(&mut input, options)?,
    };
    let limit = options.limit.unwrap_or(u64::MAX - 1);
    let records: FileRecords = match kind {
        FileKind::Ndjson => Box::new(ndjson::read(input, limit)),
        FileKind::Json => Box::new(json_array::read(input, limit)?),
        FileKind::Csv => Box::new(csv_file::read(input, limit, options)?),
        FileKind::Parquet => Box::new(parquet_file::read(input, &options.columns)?),
    };
    let columns = options.columns.clone();
    Ok(Box::new(records.flat_map(move |record| {
        let (record, error) = match record {
            Ok(record) => (Some(SplitRecord::new(record, &columns)), None),
            Err(error) => (None, Some(error)),
        };
        record.into_iter().flatten().map(Ok).chain(error.map(Err))
    })))
}
