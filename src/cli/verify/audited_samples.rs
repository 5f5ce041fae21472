//! The samples of an audit, or the known non-members of its calibration, as files.

use super::report_file::ReportFile;
use crate::cli::input::ReaderArgs;
use crate::cli::scoring_args::{NamedSettings, chat_renderer};
use crate::cli::source::SampleSource;
use crate::datasets::{ColumnText, DatasetDigest, Sample};
use crate::samples::FileSample;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use std::path::{Path, PathBuf};

/// The samples of an audit as a file.
#[derive(Args, Clone)]
pub struct AuditedSampleArgs {
    /// Samples of the audit, in a file that `audit` reads.
    #[arg(long, value_name = "FILE")]
    pub dataset: Option<PathBuf>,
    /// Column or field of the labels; by default `label`.
    #[arg(long, value_name = "NAME", help_heading = "Texts")]
    label_column: Option<String>,
    #[command(flatten)]
    reader: ReaderArgs,
}

/// Samples with the digest that they have as a dataset.
pub struct AuditedSamples {
    pub samples: Vec<Sample>,
    pub digest: String,
}

impl AuditedSampleArgs {
    /// Reads the samples of the audit; `None` if no file is given.
    pub fn read(&self, file: &ReportFile, settings: &NamedSettings) -> Result<Option<AuditedSamples>> {
        let read = |path: &PathBuf| self.read_file(path, file.provenance("dataset_digest"), settings);
        self.dataset.as_ref().map(read).transpose()
    }

    /// Reads samples. Other columns are part of them if that gives them this digest.
    pub fn read_file(&self, path: &Path, digest: Option<&str>, settings: &NamedSettings) -> Result<AuditedSamples> {
        let mut options = self.reader.options(None, true, self.label_column.clone());
        options.columns.chat = Some(chat_renderer(settings));
        let unreadable = || format!("cannot read {}", path.display());
        let source = SampleSource::open(path, &[]).with_context(unreadable)?;
        let mut read = Vec::new();
        for record in source.records(&options).with_context(unreadable)? {
            let sample = self.reader.sample(record.with_context(unreadable)?, &options);
            read.push(sample.map_err(|bad| anyhow!(bad.fault)).with_context(unreadable)?);
        }
        let plain = AuditedSamples::new(read.iter().map(|read| read.sample.clone()).collect())?;
        if digest == Some(&plain.digest) {
            return Ok(plain);
        }
        let with_columns = |FileSample { sample, others }: &FileSample| {
            let columns = ColumnText::new(&options.columns.extra(others.clone()))?;
            Ok(Sample { columns, ..sample.clone() })
        };
        let whole = AuditedSamples::new(read.iter().map(with_columns).collect::<Result<_>>()?)?;
        Ok(if digest == Some(&whole.digest) { whole } else { plain })
    }
}

impl AuditedSamples {
    fn new(samples: Vec<Sample>) -> Result<Self> {
        let mut digest = DatasetDigest::default();
        for sample in &samples {
            digest.add(sample)?;
        }
        Ok(Self { samples, digest: digest.address() })
    }
}
