//! Records of a file of any kind.

use super::error::ReadError;
use super::input::InputFile;
use super::kind::FileKind;
use super::options::ReadOptions;
use super::paired::SplitRecord;
use super::record::FileRecords;
use super::{csv_file, detection, json_array, ndjson, parquet_file};

/// The records of an input, from its beginning; one for each text where it has members and non-members in columns of their own.
///
/// # Errors
/// Where the input is no file of samples: not UTF-8, no column of texts, or damaged. What is wrong later is an item of the iterator.
pub fn records(mut input: InputFile, options: &ReadOptions) -> Result<FileRecords, ReadError> {
    let kind = detection::determine(&mut input, options)?;
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
