//! The samples of a file to audit.

use super::input::InputArgs;
use crate::audits::SampleTotals;
use crate::samples::{FileSample, ReadOptions, Record, RecordPlace, records};
use anyhow::{Context, Result, anyhow, bail};

/// Reads all samples with their places; a bad record is refused with its place, and nothing is audited.
///
/// # Errors
/// Where the file cannot be read, a record is no sample, or the samples do not make an audit.
pub fn read(args: &InputArgs, options: &ReadOptions) -> Result<Vec<(RecordPlace, FileSample)>> {
    let read = || -> Result<Vec<(RecordPlace, FileSample)>> {
        let sample = |record: Record| {
            let place = record.place;
            args.reader.sample(record, options).map(|sample| (place, sample)).map_err(|bad| anyhow!(bad.fault))
        };
        records(args.open()?, options)?.map(|record| sample(record?)).collect()
    };
    let samples = read().with_context(|| args.unreadable())?;
    let totals = SampleTotals::count(samples.iter().map(|(_, read)| &read.sample));
    match totals.fault(|number| samples[number].0.to_string()) {
        Some(fault) => bail!("{}: {fault}", args.file.display()),
        None => Ok(samples),
    }
}
