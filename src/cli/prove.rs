//! `pdr-audit prove`: shows that one sample was among those of a signed report.

use super::report::write;
use super::verify::{AuditedSampleArgs, ReportFile, SampleProof, ScoreLeaves, ScoreProof};
use crate::config::{Overrides, Settings};
use crate::datasets::DatasetDigest;
use anyhow::{Context, Result, ensure};
use attestation::{Hash, inclusion_path};
use clap::Args;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct ProveArgs {
    /// Signed report.
    report: PathBuf,
    /// Scores of its samples as NDJSON, which hold the salts.
    #[arg(long, value_name = "FILE")]
    scores: PathBuf,
    #[command(flatten)]
    dataset: AuditedSampleArgs,
    /// Place of the sample that is shown, from 0.
    #[arg(long, value_name = "NUMBER")]
    index: usize,
    /// Show its scores as well.
    #[arg(long)]
    with_scores: bool,
    /// Write the proof to this file; by default it goes to standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Writes the proof, once it holds.
pub fn run(args: &ProveArgs, config: Option<&Path>) -> Result<()> {
    let file = ReportFile::read(&args.report)?;
    file.commitment()?;
    let settings = (Settings::load(config, &Overrides::default())?, Vec::new());
    let dataset = args.dataset.read(&file, &settings)?.context("give the dataset that the sample is of (--dataset)")?;
    let sample = dataset.samples.get(args.index);
    let sample = sample.with_context(|| format!("--index: there are {} samples", dataset.samples.len()))?;
    let leaves = ScoreLeaves::read(&args.scores, args.index)?;
    let samples: Option<Vec<Hash>> = leaves.samples.iter().copied().collect();
    let samples = samples.with_context(|| format!("{}: its lines have no salts", args.scores.display()))?;
    let scores = args.with_scores.then(|| ScoreProof { line: leaves.line, path: path(&leaves.scores, args.index) });
    let proof = SampleProof {
        index: args.index,
        sample: DatasetDigest::default().add(sample)?,
        salt: leaves.opening.salt.unwrap_or_default(),
        path: path(&samples, args.index),
        scores,
    };
    for finding in proof.findings(&file)? {
        ensure!(finding.is_holding(), "{}: these are not the samples and scores of the report", finding.detail);
    }
    let json = format!("{}\n", serde_json::to_string_pretty(&proof)?);
    match &args.output {
        Some(target) => write(target, &json),
        None => Ok(stdout().lock().write_all(json.as_bytes())?),
    }
}

fn path(leaves: &[Hash], index: usize) -> Vec<String> {
    inclusion_path(leaves, index).unwrap_or_default().iter().map(hex::encode).collect()
}
