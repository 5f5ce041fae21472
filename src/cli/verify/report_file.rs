//! A report as a file: signed in an envelope, or as plain JSON.

use super::unique_keys::check_unique_keys;
use crate::audits::Provenance;
use crate::cli::report::report_in;
use anyhow::{Context, Result, ensure};
use attestation::{
    Envelope, REPORT_PREDICATE, ReportPredicate, RunTimes, SCORES, SampleTrees, Statement, Subject, report_subjects,
};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::path::Path;

/// A report that is verified.
pub struct ReportFile {
    /// The envelope and its statement; `None` if the report is not signed.
    pub signed: Option<SignedStatement>,
    /// The kind of job that the report is of, by its parts.
    pub kind: &'static str,
    pub report: Value,
    /// SHA-256 of the report's JSON, by which samples are chosen.
    pub digest: [u8; 32],
}

/// An envelope and the statement in it.
pub struct SignedStatement {
    pub envelope: Envelope,
    pub statement: Statement<ReportPredicate>,
}

impl ReportFile {
    /// Reads a report.
    ///
    /// # Errors
    /// If the file holds none, or a signed one of another program.
    pub fn read(file: &Path) -> Result<Self> {
        let named = || file.display().to_string();
        let content = std::fs::read_to_string(file).with_context(|| format!("cannot read {}", named()))?;
        check_unique_keys(&content).with_context(named)?;
        let document: Value = serde_json::from_str(&content).with_context(named)?;
        match document.get("payload") {
            Some(_) => Self::signed(serde_json::from_value(document).with_context(named)?).with_context(named),
            None => Self::plain(&document).with_context(named),
        }
    }

    fn signed(envelope: Envelope) -> Result<Self> {
        let payload = envelope.statement()?;
        let statement: Statement<ReportPredicate> = Statement::read(&payload, REPORT_PREDICATE)?;
        check_unique_keys(std::str::from_utf8(&payload)?)?;
        let json = statement.predicate.report.get();
        let (report, digest) = (serde_json::from_str(json)?, Sha256::digest(json).into());
        let (kind, _) = report_in(&report)?;
        Ok(Self { signed: Some(SignedStatement { envelope, statement }), kind, report, digest })
    }

    fn plain(document: &Value) -> Result<Self> {
        let (kind, report) = report_in(document)?;
        let digest = Sha256::digest(serde_json::to_string(report)?).into();
        Ok(Self { signed: None, kind, report: report.clone(), digest })
    }

    /// The times of the run, as far as the report says them.
    pub fn run(&self) -> RunTimes {
        self.signed.as_ref().map(|signed| signed.statement.predicate.run.clone()).unwrap_or_default()
    }

    /// True if the report is of a test of two lists, which an audit of the same texts gives the scores for.
    pub fn is_list_test(&self) -> bool {
        self.kind == "test" && ["dataset", "di"].map(Value::from).contains(&self.report["kind"])
    }

    /// True if the numbers of the report can be recomputed from scores.
    pub fn is_of_scores(&self) -> bool {
        self.kind == "audit" || self.is_list_test()
    }

    /// A text of the provenance.
    pub fn provenance(&self, name: &str) -> Option<&str> {
        self.report["provenance"][name].as_str()
    }

    /// The trees of samples that the signed report commits to.
    ///
    /// # Errors
    /// If it commits to none.
    pub fn commitment(&self) -> Result<SampleTrees> {
        let signed = self.signed.as_ref().context("the report is not signed, so it commits to no samples")?;
        signed.statement.predicate.samples.context("the signed report has no trees of samples")
    }
}

impl SignedStatement {
    /// The SHA-256 of the file of scores that was signed.
    pub fn scores_digest(&self) -> Option<&str> {
        self.statement.subject(SCORES)?.sha256()
    }

    /// Checks that kind, subjects and trees are those of the report.
    ///
    /// # Errors
    /// The first part that is not.
    pub fn check(&self, file: &ReportFile) -> Result<()> {
        let ReportPredicate { kind, samples, report, .. } = &self.statement.predicate;
        ensure!(
            kind == file.kind,
            "the statement says that it is of a {kind:?}, and the report is of a {:?}",
            file.kind
        );
        let (scores, named): (Vec<&Subject>, Vec<&Subject>) =
            self.statement.subject.iter().partition(|subject| subject.name == SCORES);
        let expected = report_subjects(report)?;
        ensure!(named == expected.iter().collect::<Vec<_>>(), "the subjects are not those that the report names");
        let is_one = scores.len() == usize::from(samples.is_some())
            && scores.iter().all(|scores| scores.sha256().is_some() && scores.digest.len() == 1);
        ensure!(is_one, "the scores are not one subject with a SHA-256, as the trees of samples are");
        if let Some(SampleTrees { leaves, .. }) = samples {
            let total = &file.report["samples"]["total"];
            ensure!(*total == *leaves, "the trees have {leaves} leaves, and the report has {total} samples");
        }
        Ok(())
    }
}

/// The provenance of an audit.
pub fn provenance(file: &ReportFile) -> Result<Provenance> {
    Provenance::deserialize(&file.report["provenance"]).context("`provenance` of the report")
}
