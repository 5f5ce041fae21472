//! The samples of a file to audit.

use super::input::InputArgs;
use crate::datasets::SampleTotals;
use crate::samples::{FileSample, ReadOptions, Record, RecordPlace};
use anyhow::{Context, Result, anyhow, bail};

/// Reads all samples with their places; a bad record is refused with its place, and nothing is audited.
///
/// # Errors
/// Where the file cannot be read, a record is no sample, or the samples do not make an audit.
pub fn read(args: &InputArgs, options: &ReadOptions) -> Result<Vec<(RecordPlace, FileSample)>> {
    let samples = read_all(args, options)?;
    let totals = SampleTotals::count(samples.iter().map(|(_, read)| &read.sample))?;
    match totals.audit_fault(|number| samples[number].0.to_string()) {
        Some(fault) => bail!("{}: {fault}", args.file.display()),
        None => Ok(samples),
    }
}

/// Reads all samples with their places, whatever they make together; a bad record is refused with its place.
///
/// # Errors
/// Where the file cannot be read, or a record is no sample.
pub fn read_all(args: &InputArgs, options: &ReadOptions) -> Result<Vec<(RecordPlace, FileSample)>> {
    let source = args.source()?;
    let read = || -> Result<Vec<(RecordPlace, FileSample)>> {
        let sample = |record: Record| {
            let place = record.place;
            let sample = args.reader.scored_sample(record, options).map_err(|bad| anyhow!(bad.fault))?;
            Ok((place, sample))
        };
        source.records(options)?.map(|record| sample(record?)).collect()
    };
    read().with_context(|| args.unreadable())
}
