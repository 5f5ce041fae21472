//! A report as a file: signed in an envelope, or as plain JSON.

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
    /// The envelope and the subjects of its statement; `None` if the report is not signed.
    pub signed: Option<(Envelope, Vec<Subject>)>,
    pub kind: String,
    pub run: RunTimes,
    pub trees: Option<SampleTrees>,
    pub report: Value,
    /// SHA-256 of the report's JSON, by which samples are chosen.
    pub digest: [u8; 32],
}

impl ReportFile {
    /// Reads a report.
    ///
    /// # Errors
    /// If the file holds none, or a signed one of another program.
    pub fn read(file: &Path) -> Result<Self> {
        let named = || file.display().to_string();
        let content = std::fs::read(file).with_context(|| format!("cannot read {}", named()))?;
        let document: Value = serde_json::from_slice(&content).with_context(named)?;
        match document.get("payload") {
            Some(_) => Self::signed(serde_json::from_value(document).with_context(named)?).with_context(named),
            None => Self::plain(&document).with_context(named),
        }
    }

    fn signed(envelope: Envelope) -> Result<Self> {
        let statement: Statement<ReportPredicate> = Statement::read(&envelope.statement()?, REPORT_PREDICATE)?;
        let ReportPredicate { kind, run, samples, report, .. } = statement.predicate;
        let digest = Sha256::digest(report.get()).into();
        let report = serde_json::from_str(report.get())?;
        Ok(Self { signed: Some((envelope, statement.subject)), kind, run, trees: samples, report, digest })
    }

    fn plain(document: &Value) -> Result<Self> {
        let (kind, report) = report_in(document)?;
        let digest = Sha256::digest(serde_json::to_string(report)?).into();
        let (kind, report) = (kind.to_owned(), report.clone());
        Ok(Self { signed: None, kind, run: RunTimes::default(), trees: None, report, digest })
    }

    /// The first way in which the subjects of the statement and the report disagree, in words; `None` if they agree.
    pub fn subject_fault(&self) -> Option<String> {
        let (envelope, subjects) = self.signed.as_ref()?;
        let statement: Statement<ReportPredicate> =
            Statement::read(&envelope.statement().ok()?, REPORT_PREDICATE).ok()?;
        let expected = report_subjects(&statement.predicate.report).ok()?;
        let differs = |subject: &&Subject| subject.name != SCORES && !expected.contains(subject);
        let foreign = subjects.iter().find(differs);
        let missing = expected.iter().find(|subject| !subjects.contains(subject));
        let subject = foreign.or(missing)?;
        Some(format!("the subject `{}` is not what the report says", subject.name))
    }

    /// True if the report is of an audit, whose numbers can be recomputed.
    pub fn is_audit(&self) -> bool {
        self.kind == "audit"
    }

    /// A text of the provenance.
    pub fn provenance(&self, name: &str) -> Option<&str> {
        self.report["provenance"][name].as_str()
    }

    /// The envelope and its trees of samples.
    ///
    /// # Errors
    /// If the report is not signed, or commits to no samples.
    pub fn commitment(&self) -> Result<SampleTrees> {
        ensure!(self.signed.is_some(), "the report is not signed, so it commits to no samples");
        self.trees.context("the signed report has no trees of samples")
    }
}

/// The provenance of an audit.
pub fn provenance(file: &ReportFile) -> Result<Provenance> {
    Provenance::deserialize(&file.report["provenance"]).context("`provenance` of the report")
}
