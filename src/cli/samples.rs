//! The samples of a file to audit.

use super::{lines, rows};
use crate::audits::{Sample, samples_error};
use anyhow::{Context, Result, anyhow, bail};
use std::path::Path;

/// Reads all samples, of CSV (`.csv`) or else NDJSON; a bad line is refused with its number, and nothing is audited.
///
/// # Errors
/// Where the file cannot be read, a line is no sample, or the samples do not make an audit.
pub fn read(path: &Path) -> Result<Vec<Sample>> {
    let read = || -> Result<Vec<Sample>> {
        let (reader, _) = lines::open(path)?;
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            let records = rows::read(reader, u64::MAX)?;
            let sample = |record: rows::Record| checked(record.line, record.row.try_into());
            records.map(|record| sample(record?)).collect()
        } else {
            let mut lines = lines::Lines::new(reader, u64::MAX - 1);
            let sample = |line: Vec<u8>| {
                let line = lines::parse(&line, &lines::SAMPLE).map_err(|bad| anyhow!(bad.fault));
                line.map(|line| line.sample)
            };
            let mut samples = Vec::new();
            while let Some(line) = lines.next()? {
                samples.push(checked(lines.number(), line.map_err(|fault| anyhow!(fault)).and_then(sample))?);
            }
            Ok(samples)
        }
    };
    let samples = read().with_context(|| format!("cannot read {}", path.display()))?;
    match samples_error(&samples) {
        Some(fault) => bail!("{}: {fault}", path.display()),
        None => Ok(samples),
    }
}

/// A sample whose label is one; else the fault with its line.
fn checked(line: u64, sample: Result<Sample>) -> Result<Sample> {
    let checked = sample.and_then(|sample| match sample.label_error() {
        Some(fault) => Err(anyhow!(fault)),
        None => Ok(sample),
    });
    checked.with_context(|| format!("line {line}"))
}
