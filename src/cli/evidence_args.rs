//! The flags of what a verdict rests on.

use super::input::{InputArgs, ReaderArgs};
use super::progress::Progress;
use super::scoring_args::{NamedSettings, variant};
use super::source::SampleSource;
use crate::audits::{
    AuditMetrics, AuditRequest, Calibration, CalibrationShare, CalibrationSource, DecisionOptions, EvidenceOptions,
    EvidenceRequest, LEVEL, RunEvent, StratifyBy, calibrate, known_works_needed, smallest_p,
};
use crate::config::Settings;
use crate::datasets::{Sample, SampleBlocks, estimated_tokens};
use crate::samples::ChatRenderer;
use crate::scorer::{Plan, Scorer};
use crate::wire::number_of;
use anyhow::{Context, Result, bail};
use clap::Args;
use mia::statistics::{CalibrationScores, Procedure};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// The value of `--control` that is no model.
const NO_CONTROL: &str = "none";

#[derive(Args)]
#[command(next_help_heading = "Verdict")]
pub struct EvidenceArgs {
    /// Label or name of the method that the verdict is about; by default ref, else min_k_plus_plus, else the first method.
    #[arg(long, value_name = "METHOD")]
    primary: Option<String>,
    /// A model that has not seen the members, named as `--model` is, or `none`; by default the base of the model (that of
    /// an adapter, or `base` of the settings), else the reference model. The same methods run on it, and the verdict is about the
    /// difference.
    #[arg(long, value_name = "MODEL")]
    control: Option<String>,
    /// Compare the classes within the groups of the samples as well.
    #[arg(long, value_name = "WHAT", value_parser = variant::<StratifyBy>())]
    stratify: Option<StratifyBy>,
    /// The share of members among texts like these, which makes probabilities of scores (`--scores`).
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    prior: Option<f64>,
    /// A file of known non-members like the texts, 19 at least: every text gets a p-value against them. A folder or an archive of
    /// documents is as many known works.
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// In place of such a file, this share of the file's own non-members.
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, conflicts_with = "calibration")]
    calibration_share: Option<f64>,
    /// The false discovery rate of the list that the calibration makes; by default 0.1.
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    fdr: Option<f64>,
    /// Procedure that makes the list; by default bh.
    #[arg(long, value_name = "NAME", value_parser = variant::<Procedure>())]
    procedure: Option<Procedure>,
}

/// The settings with the control model that `--control` names, and its id: `None` inside for none.
///
/// # Errors
/// Where it is no model.
pub fn named_control(settings: Settings, control: Option<&str>) -> Result<(Settings, Option<Option<String>>)> {
    Ok(match control {
        None => (settings, None),
        Some(NO_CONTROL) => (settings, Some(None)),
        Some(control) => {
            let (settings, id) = settings.with_control(control)?;
            (settings, Some(Some(id)))
        }
    })
}

impl EvidenceArgs {
    /// Returns the options of the verdict by the flags, and the settings with the control model that they name.
    pub fn options(&self, (settings, named): NamedSettings) -> Result<(NamedSettings, EvidenceOptions)> {
        let (settings, control) = named_control(settings, self.control.as_deref())?;
        // By its content, so that a plan fixes it.
        let digest = |file: &PathBuf| -> Result<CalibrationSource> {
            let digest = SampleSource::open(file, &[]).and_then(|source| source.digest());
            let digest = digest.with_context(|| format!("cannot read {}", file.display()))?;
            Ok(CalibrationSource::Stored(format!("sha256:{digest}")))
        };
        let file = self.calibration.as_ref().map(digest).transpose()?;
        let share = |share| CalibrationSource::Share(CalibrationShare { share, seed: 0 });
        let decides = self.fdr.is_some() || self.procedure.is_some();
        let decisions = DecisionOptions { method: None, fdr: self.fdr, procedure: self.procedure };
        let options = EvidenceOptions {
            primary: self.primary.clone(),
            control,
            stratify: self.stratify,
            prior: self.prior,
            calibration: file.or(self.calibration_share.map(share)),
            decisions: decides.then_some(decisions),
        };
        Ok(((settings, named), options))
    }

    /// Scores the known non-members of `--calibration`; none without that flag.
    pub async fn calibrate(
        &self,
        plan: &Plan,
        reader: &ReaderArgs,
        chat: ChatRenderer,
        scorer: &Scorer,
    ) -> Result<Option<Calibration>> {
        let Some(file) = &self.calibration else { return Ok(None) };
        let input = InputArgs { file: file.clone(), more: Vec::new(), reader: reader.clone() };
        let mut options = reader.options(None, true, None);
        options.columns.chat = Some(chat);
        let read = input.samples(&options)?;
        let samples: Vec<Sample> = read.into_iter().map(|(_, read)| read.sample).collect();
        if let Some(place) = samples.iter().position(|sample| sample.is_member() == Some(true)) {
            bail!("--calibration: {}: sample {place} is labelled a member; it takes known non-members", file.display());
        }
        tell_known(&samples, file)?;
        let unlabelled = samples.into_iter().map(|sample| Sample { label: None, ..sample });
        let samples = SampleBlocks::Memory(unlabelled.collect());
        let request = AuditRequest {
            model: plan.model.clone(),
            methods: plan.methods.to_vec(),
            overflow: plan.overflow,
            metrics: AuditMetrics { bootstrap: None, ..AuditMetrics::default() },
            evidence: EvidenceRequest::default(),
        };
        let progress = Progress::new(None);
        let show = |event| {
            if let RunEvent::Scored { done } = event {
                progress.show(None, format!("calibration: {}", number_of(done, "text")));
            }
        };
        let calibrated = calibrate(&request, samples, scorer, show).await;
        drop(progress);
        Ok(Some(calibrated.with_context(|| format!("--calibration: {}", file.display()))?))
    }
}

/// Says how many known non-members there are, counting the passages of a work once, and which p-values they make possible.
///
/// # Errors
/// Where they are too few for p-values.
fn tell_known(samples: &[Sample], file: &Path) -> Result<()> {
    let documents: HashSet<String> =
        samples.iter().filter_map(|sample| sample.document.as_ref().map(ToString::to_string)).collect();
    let alone = samples.iter().filter(|sample| sample.document.is_none()).count();
    let (known, fewest) = (documents.len() + alone, CalibrationScores::FEWEST);
    let known_texts = number_of(known, if documents.is_empty() { "known non-member" } else { "known work" });
    let Some(smallest) = smallest_p(known) else {
        let verb = if known == 1 { "is" } else { "are" };
        bail!("--calibration: {}: {known_texts} {verb} too few: p-values take {fewest} at least", file.display());
    };
    let bytes: u64 = samples.iter().map(|sample| sample.text.len() as u64).sum();
    eprintln!(
        "{known_texts}, about {} tokens (estimated from their bytes): no p-value is below {smallest:.4}; one of {LEVEL} takes {}",
        estimated_tokens(bytes),
        known_works_needed()
    );
    Ok(())
}
