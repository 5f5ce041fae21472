//! `pdr-audit sign`: signs a report, or adds a signature to one that is signed.

use super::report::{report_in, write};
use super::verify::ScoreFile;
use crate::app;
use crate::config::{Overrides, Settings};
use anyhow::{Context, Result, ensure};
use attestation::{
    EVAL_RESULT_PREDICATE, Envelope, REPORT_PREDICATE, ReportPredicate, RunTimes, SampleTrees, SigningKey, Statement,
    sign_report,
};
use clap::Args;
use serde_json::Value;
use serde_json::value::RawValue;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct SignArgs {
    /// Report of any kind of job as JSON, or a signed report, which gets another signature.
    file: PathBuf,
    /// Scores of an audit, whose lines have salts: the signed report commits to them and to the samples.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    #[command(flatten)]
    key: SigningKeyArgs,
    /// Write the signed report to this file; by default it goes to standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The key that signs.
#[derive(Args, Clone, Debug, Default)]
pub struct SigningKeyArgs {
    /// Private key that signs reports, as `key new-signing` writes it; by default `signing.key_file` of the settings.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    signing_key: Option<PathBuf>,
}

impl SigningKeyArgs {
    /// Reads the key that is named here or in the settings; `None` if none is.
    pub fn read(&self, settings: &Settings) -> Result<Option<SigningKey>> {
        match &self.signing_key {
            Some(file) => app::read_signing_key(file).context("--signing-key").map(Some),
            None => app::signing_key(settings),
        }
    }
}

/// Signs the file.
pub fn run(args: &SignArgs, config: Option<&Path>) -> Result<()> {
    let named = || args.file.display().to_string();
    let settings = Settings::load(config, &Overrides::default())?;
    let key = args.key.read(&settings)?.context("give the key that signs (--signing-key)")?;
    let content = std::fs::read(&args.file).with_context(named)?;
    let document: Value = serde_json::from_slice(&content).with_context(named)?;
    let envelope = if document.get("payload").is_some() {
        ensure!(args.scores.is_none(), "--scores: what is signed already commits to its scores, or to none");
        let mut envelope: Envelope = serde_json::from_value(document).with_context(named)?;
        check_statement(&envelope).with_context(named)?;
        envelope.countersign(&key).with_context(named)?;
        envelope
    } else {
        let (kind, report) = report_in(&document).with_context(named)?;
        let time = |name: &str| document[name].as_str().map(str::to_owned);
        let run = RunTimes { job: time("id"), started_at: time("started_at"), finished_at: time("finished_at") };
        let scores = args.scores.as_deref().map(trees).transpose()?;
        if let Some((SampleTrees { leaves, .. }, _)) = &scores {
            let total = &report["samples"]["total"];
            ensure!(*total == *leaves, "--scores: there are {leaves} lines, and the report has {total} samples");
        }
        sign_report(kind, run, raw(report)?, scores, &key)?
    };
    let json = format!("{}\n", serde_json::to_string(&envelope)?);
    match &args.output {
        Some(target) => write(target, &json),
        None => Ok(stdout().lock().write_all(json.as_bytes())?),
    }
}

/// Refuses to sign what is not a report, or the verdict of one.
fn check_statement(envelope: &Envelope) -> Result<()> {
    let payload = envelope.statement()?;
    if Statement::<Value>::read(&payload, EVAL_RESULT_PREDICATE).is_err() {
        Statement::<ReportPredicate>::read(&payload, REPORT_PREDICATE)?;
    }
    Ok(())
}

/// The trees of a file of scores, and its SHA-256.
fn trees(file: &Path) -> Result<(SampleTrees, String)> {
    let ScoreFile { trees, digest, .. } = ScoreFile::read(file)?;
    let has_salts = trees.dataset.is_some();
    ensure!(has_salts, "{}: its lines have no salts, which an audit with a signing key writes", file.display());
    Ok((trees, digest))
}

/// A report as the JSON that is signed.
pub fn raw(report: &Value) -> Result<Box<RawValue>> {
    Ok(RawValue::from_string(serde_json::to_string(report)?)?)
}
