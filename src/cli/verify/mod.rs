//! `pdr-audit verify`: a report in, and for each of five steps whether it holds.

mod audited_samples;
mod plan;
mod proof;
mod report_file;
mod rescoring;
mod score_file;
mod statistics;
mod step;
mod unique_keys;

pub use audited_samples::AuditedSampleArgs;
pub use proof::{SampleProof, ScoreProof};
pub use report_file::ReportFile;
pub use score_file::{ScoreFile, ScoreLeaves};

use super::evidence_args::named_control;
use super::report::SCORES;
use super::report_format::{ReportArgs, readable, table_width};
use super::scoring_args::{self, NamedSettings, VariantArgs};
use crate::app;
use crate::audits::ScoredTexts;
use crate::config::{Overrides, Settings};
use crate::datasets::SampleBlocks;
use crate::scorer::Workers;
use crate::wire::number_of;
use anyhow::{Context, Result};
use attestation::PublicKey;
use audited_samples::AuditedSamples;
use clap::Args;
use report_file::{SignedStatement, provenance};
use rescoring::{ChosenSamples, LocalModels, SampleChoice};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use step::{Finding, VerificationStep, exit_code, table};

#[derive(Args)]
pub struct VerifyArgs {
    /// Signed report (`report.dsse.json` of an audit's folder, or what the service answers with `accept:
    /// application/vnd.dsse.envelope+json`), or an unsigned report as JSON.
    report: PathBuf,
    /// Public key of a required signer, in PEM. May be given several times.
    #[arg(long, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// The plan that the report cites, as a file.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Proof of one sample, as `prove` writes it.
    #[arg(long, value_name = "FILE")]
    proof: Option<PathBuf>,
    /// Scores of the samples as NDJSON, from which every statistic is recomputed; by default `scores.ndjson`
    /// beside the report in the folder of an audit.
    #[arg(long, value_name = "FILE")]
    scores: Option<PathBuf>,
    #[command(flatten)]
    dataset: AuditedSampleArgs,
    /// Scores of the known non-members of the audit's calibration as NDJSON: those of an audit of these alone, by the same methods.
    #[arg(long, value_name = "FILE", requires_all = ["known_dataset", "dataset"], help_heading = "Known non-members")]
    known: Option<PathBuf>,
    /// Known non-members of the audit's calibration, in a file that `audit` reads.
    #[arg(long, value_name = "FILE", requires = "known", help_heading = "Known non-members")]
    known_dataset: Option<PathBuf>,
    /// Model whose weights score some samples again, named as `audit --model` names one.
    #[arg(long, help_heading = "Model")]
    model: Option<String>,
    #[command(flatten)]
    variant: VariantArgs,
    /// Control model, named likewise; by default the model of the id that the report names.
    #[arg(long, value_name = "MODEL", help_heading = "Model")]
    control: Option<String>,
    /// Number of samples to score again. The report's hash chooses them.
    #[arg(long, value_name = "NUMBER", help_heading = "Model", default_value = "20")]
    sample: NonZeroUsize,
    /// Text of your own that enters the choice of samples, so that the signer could not foresee it.
    #[arg(long, value_name = "TEXT", help_heading = "Model", default_value = "", hide_default_value = true)]
    sample_seed: String,
    #[command(flatten)]
    output: ReportArgs,
}

/// Verifies the report. The exit status is 0 if no check fails, 1 if one does, and 2 if nothing could be checked.
pub async fn run(args: VerifyArgs, config: Option<&Path>) -> ExitCode {
    match args.steps(config).await.and_then(|steps| args.print(&steps)) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", readable(&format!("{error:#}")));
            ExitCode::from(2)
        }
    }
}

impl VerifyArgs {
    fn print(&self, steps: &[VerificationStep]) -> Result<ExitCode> {
        let output = self.output.or_table();
        output.print(&serde_json::json!({ "steps": steps }), |_, _| table(steps, table_width(self.output.wide)))?;
        Ok(exit_code(steps))
    }

    async fn steps(&self, config: Option<&Path>) -> Result<Vec<VerificationStep>> {
        let file = ReportFile::read(&self.report)?;
        let settings = self.settings(config)?;
        let scores =
            self.score_file().map(|path| Ok::<_, anyhow::Error>((ScoreFile::read(&path)?, path))).transpose()?;
        let dataset = self.dataset.read(&file, &settings)?;
        let known = match &self.known_dataset {
            Some(path) => Some(self.dataset.read_file(path, file.provenance("calibration_digest"), &settings)?),
            None => None,
        };
        let workers = Workers::new(0)?;
        let signature = VerificationStep::new(1, "signature", self.signatures(&file)?);
        let files = VerificationStep::new(
            2,
            "files",
            self.digests(&file, scores.as_ref(), [dataset.as_ref(), known.as_ref()])?,
        );
        let mut statistics = Vec::new();
        let mut rescored = Vec::new();
        match scores {
            _ if !file.is_of_scores() => {
                let kind = file.report["kind"].as_str().map_or_else(String::new, |kind| format!(" of kind `{kind}`"));
                let detail = format!("a {} report{kind} cannot be recomputed from scores", file.kind);
                statistics.push(Finding::not_checked(detail.clone()));
                rescored.push(Finding::not_checked(detail));
            }
            None => {
                statistics.push(Finding::not_checked("give the scores (--scores)"));
                rescored.push(Finding::not_checked(
                    "give the scores, the dataset and the model (--scores, --dataset, --model)",
                ));
            }
            Some((scores, _)) => {
                rescored = self.rescored(&file, &scores, dataset.as_ref(), settings).await?;
                let samples = dataset.map(|dataset| SampleBlocks::Memory(dataset.samples.into()));
                let known_samples = known.map(|dataset| SampleBlocks::Memory(dataset.samples.into()));
                let known_scores = self.known.as_deref().map(ScoreFile::read).transpose()?;
                let texts = ScoredTexts { lines: scores.lines, samples: samples.as_ref() };
                let known =
                    known_scores.map(|scores| ScoredTexts { lines: scores.lines, samples: known_samples.as_ref() });
                statistics = statistics::findings(&file, texts, known, &workers).await?;
            }
        }
        Ok(vec![
            signature,
            files,
            VerificationStep::new(3, "statistics", statistics),
            VerificationStep::new(4, "scores", rescored),
            VerificationStep::new(5, "plan", plan::findings(&file, self.plan.as_deref())?),
        ])
    }

    /// The settings with the models that are named.
    fn settings(&self, config: Option<&Path>) -> Result<NamedSettings> {
        let flags = self.variant.clone().with(self.model.iter().cloned().collect());
        Ok(Settings::load(config, &Overrides::default())?.with_models(&flags)?)
    }

    fn score_file(&self) -> Option<PathBuf> {
        let beside = self.report.with_file_name(SCORES);
        let is_in_folder = self.report.with_file_name("request.json").is_file() && beside.is_file();
        self.scores.clone().or(Some(beside).filter(|_| is_in_folder))
    }

    /// Step 1.
    fn signatures(&self, file: &ReportFile) -> Result<Vec<Finding>> {
        let Some(SignedStatement { envelope, .. }) = &file.signed else {
            let detail = "the report is not signed";
            return Ok(vec![if self.key.is_empty() { Finding::not_checked(detail) } else { Finding::fails(detail) }]);
        };
        if self.key.is_empty() {
            let ids: Vec<&str> = envelope.signatures.iter().map(|signature| signature.keyid.as_str()).collect();
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            return Ok(vec![Finding::not_checked(format!(
                "give the public key of the signer (--key); the signatures name the keys {ids}"
            ))]);
        }
        let finding = |path: &PathBuf| {
            let pem = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let key = PublicKey::from_pem(&pem).with_context(|| path.display().to_string())?;
            let (path, id) = (path.display(), key.id());
            Ok(match envelope.is_signed_by(&key) {
                true => Finding::holds(format!("signed by the key of {path} ({id})")),
                false => Finding::fails(format!("no signature is by the key of {path} ({id})")),
            })
        };
        self.key.iter().map(finding).collect()
    }

    /// Step 2.
    fn digests(
        &self,
        file: &ReportFile,
        scores: Option<&(ScoreFile, PathBuf)>,
        [dataset, known]: [Option<&AuditedSamples>; 2],
    ) -> Result<Vec<Finding>> {
        let mut findings = Vec::new();
        if let Some(signed) = &file.signed {
            findings.push(match signed.check(file) {
                Ok(()) => {
                    let subjects = number_of(signed.statement.subject.len(), "subject");
                    Finding::holds(format!("the report and its {subjects} agree"))
                }
                Err(fault) => Finding::fails(format!("{fault:#}")),
            });
        }
        findings.extend(scores.map(|(scores, path)| scores_finding(file, scores, path)));
        let named = [("dataset", "dataset_digest", dataset), ("known dataset", "calibration_digest", known)];
        for (name, field, dataset) in named {
            let Some(AuditedSamples { samples, digest }) = dataset else { continue };
            let (count, claimed) = (number_of(samples.len(), "sample"), file.provenance(field).unwrap_or("none"));
            findings.push(match claimed == digest {
                true => Finding::holds(format!("the {name}'s {count} are those of the report")),
                false => Finding::fails(format!("the {name} is {digest}, and the report's {claimed}")),
            });
        }
        if dataset.is_none() && file.is_of_scores() {
            findings.push(Finding::not_checked("give the dataset (--dataset)"));
        }
        if let Some(path) = &self.proof {
            let named = || path.display().to_string();
            let content = std::fs::read(path).with_context(named)?;
            let proof: SampleProof = serde_json::from_slice(&content).with_context(named)?;
            findings.extend(proof.findings(file)?);
        }
        Ok(findings)
    }

    /// Step 4.
    async fn rescored(
        &self,
        file: &ReportFile,
        scores: &ScoreFile,
        dataset: Option<&AuditedSamples>,
        (settings, named): NamedSettings,
    ) -> Result<Vec<Finding>> {
        let (Some(model), Some(dataset)) = (named.first(), dataset) else {
            return Ok(vec![Finding::not_checked("give the dataset and the model (--dataset, --model)")]);
        };
        let provenance = provenance(file)?;
        let (settings, control) = named_control(settings, self.control.as_deref())?;
        let control = control.unwrap_or_else(|| provenance.request.control.clone());
        let models = LocalModels { model: model.clone(), control };
        let scorer = app::make_scorer(&settings, app::hub())?;
        let choice = SampleChoice { count: self.sample.get(), seed: &self.sample_seed };
        let chosen = ChosenSamples::choose(file, &dataset.samples, &scores.lines, choice);
        let findings = chosen.findings(&provenance, &scorer, models).await;
        scoring_args::finish(&scorer).await;
        findings
    }
}

fn scores_finding(file: &ReportFile, scores: &ScoreFile, path: &Path) -> Finding {
    let (path, lines) = (path.display(), number_of(scores.lines.len(), "line"));
    let Some(signed) = &file.signed else {
        return Finding::not_checked(format!("{path}: a report that is not signed commits to no scores"));
    };
    let Some(trees) = signed.statement.predicate.samples else {
        return Finding::not_checked(format!("{path}: the signed report commits to no scores"));
    };
    if signed.scores_digest() != Some(&scores.digest) || trees != scores.trees {
        return Finding::fails(format!("{path}: its {lines} are not the {} that were signed", trees.leaves));
    }
    Finding::holds(format!("{path}: its {lines} are those that were signed, with the roots of both trees"))
}
