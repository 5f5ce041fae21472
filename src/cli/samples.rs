//! The samples of a file to audit.

use super::input::InputArgs;
use crate::audits::{Sample, samples_error};
use crate::samples::{FileSample, ReadOptions, Record, records};
use anyhow::{Context, Result, anyhow, bail};

/// Reads all samples; a bad record is refused with its place, and nothing is audited.
///
/// # Errors
/// Where the file cannot be read, a record is no sample, or the samples do not make an audit.
pub fn read(args: &InputArgs, options: &ReadOptions) -> Result<Vec<FileSample>> {
    let records = || records(args.open()?, options).with_context(|| args.unreadable());
    let sample = |record: Result<Record, _>| -> Result<FileSample> {
        let Record { place, fields, .. } = record?;
        let read = fields.and_then(|fields| options.columns.sample(fields).map_err(|bad| bad.fault));
        read.map_err(|fault| anyhow!("{place}: {fault}"))
    };
    let cut = |read: FileSample| {
        let text = args.cut(read.sample.text);
        FileSample { sample: Sample { text, ..read.sample }, ..read }
    };
    let samples = records()?.map(|record| sample(record).map(cut));
    let samples: Vec<FileSample> = samples.collect::<Result<_>>().with_context(|| args.unreadable())?;
    match samples_error(samples.iter().map(|read| &read.sample)) {
        Some(fault) => bail!("{}: {fault}", args.file.display()),
        None => Ok(samples),
    }
}
