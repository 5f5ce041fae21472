//! The samples of a file to audit.

use super::input::InputArgs;
use crate::audits::SampleTotals;
use crate::samples::{FileSample, ReadOptions};
use anyhow::{Context, Result, anyhow, bail};

/// Reads all samples; a bad record is refused with its place, and nothing is audited.
///
/// # Errors
/// Where the file cannot be read, a record is no sample, or the samples do not make an audit.
pub fn read(args: &InputArgs, options: &ReadOptions) -> Result<Vec<FileSample>> {
    let samples = read_all(args, options)?;
    match SampleTotals::count(samples.iter().map(|read| &read.sample)).fault() {
        Some(fault) => bail!("{}: {fault}", args.file.display()),
        None => Ok(samples),
    }
}

/// Reads all samples, whatever they make together; a bad record is refused with its place.
///
/// # Errors
/// Where the file cannot be read, or a record is no sample.
pub fn read_all(args: &InputArgs, options: &ReadOptions) -> Result<Vec<FileSample>> {
    let source = args.source()?;
    let read = || -> Result<Vec<FileSample>> {
        let sample = |record| args.scored_sample(record, options).map_err(|bad| anyhow!(bad.fault));
        source.records(options)?.map(|record| sample(record?)).collect()
    };
    read().with_context(|| args.unreadable())
}
