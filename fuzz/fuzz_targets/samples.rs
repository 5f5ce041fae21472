//! Feeds a file of samples to the reader that uploads and the command line share: NDJSON, a JSON array, CSV, Parquet, and
//! any of them compressed.
//!
//! The bits of the first byte choose how the file is read; the rest is the file.
//!
//! No panic, memory bounded by the limits and not by what the file announces, and a fault that says what is wrong.

#![no_main]

use libfuzzer_sys::fuzz_target;
use pdr_audit::samples::{
    ColumnNames, DatasetFault, DatasetOptions, FileKind, InputFile, ReadOptions, encode_dataset, records,
};
use pdr_audit_fuzz::{allow_panics_of, bound_memory, choice};
use std::io::Cursor;
use std::num::NonZeroUsize;

/// The most bytes of a file once it is decompressed, and of the samples in it.
const LIMIT: u64 = 1 << 20;
/// The most bytes of one record.
const RECORD: u64 = 64 << 10;

/// How the kind of file is found: by itself, or by what the client says of it, with what separates the columns.
const KINDS: [(Option<FileKind>, Option<u8>); 6] = [
    (None, None),
    (Some(FileKind::Ndjson), None),
    (Some(FileKind::Json), None),
    (Some(FileKind::Csv), None),
    (Some(FileKind::Csv), Some(b'\t')),
    (Some(FileKind::Parquet), None),
];

fuzz_target!(init: { bound_memory(); allow_panics_of(&["parquet"]) }, |data: &[u8]| {
    let Some((choice, file)) = choice(data) else { return };
    let (kind, delimiter) = KINDS[(choice & 0x07) % KINDS.len()];
    let is_set = |bit: usize| choice & bit != 0;
    let columns = ColumnNames {
        text: is_set(0x08).then(|| "content".to_owned()),
        label: is_set(0x08).then(|| "is_member".to_owned()),
        id: is_set(0x08).then(|| "key".to_owned()),
        labelled: !is_set(0x10),
        chat: None,
    };
    let read = ReadOptions { kind, delimiter, columns, limit: Some(RECORD), ..ReadOptions::default() };
    if is_set(0x20) {
        read_records(file, &read);
    } else {
        let words = is_set(0x40).then_some(NonZeroUsize::MIN);
        let dataset = DatasetOptions { words, keep_columns: is_set(0x80), limit: LIMIT, text_limit: RECORD };
        let fault = encode(file, &read, dataset);
        assert!(fault.is_none_or(|fault| !fault.to_string().is_empty()));
    }
});

fn input(file: &[u8]) -> std::io::Result<InputFile> {
    let input = InputFile::from_reader(Cursor::new(file.to_vec()), "")?;
    Ok(input.limited(LIMIT, Default::default()))
}

/// As an upload: up to the first fault.
fn encode(file: &[u8], read: &ReadOptions, dataset: DatasetOptions) -> Option<DatasetFault> {
    let input = match input(file) {
        Ok(input) => input,
        Err(error) => return Some(DatasetFault::Unreadable(error.into())),
    };
    encode_dataset(input, read, dataset, |block| !block.is_empty()).err()
}

/// As the command line: what is wrong with one record is noted beside it.
fn read_records(file: &[u8], read: &ReadOptions) {
    let Ok(input) = input(file) else { return };
    let Ok(records) = records(input, read) else { return };
    for record in records.map_while(Result::ok) {
        let sample = record.fields.map(|fields| read.columns.sample(fields));
        assert!(sample.err().is_none_or(|fault| !fault.is_empty()));
    }
}
