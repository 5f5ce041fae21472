//! `pdr-audit finetune`: texts that a model has not seen in, a LoRA adapter out.

use super::demo_model;
use super::input::InputArgs;
use super::progress::Progress;
use super::report_format::ReportArgs;
use super::scoring_args::load_settings;
use crate::app;
use crate::config::ModelFlags;
use crate::finetunes::{self, FinetuneReport, FinetuneRequest, TuningBase, TuningObserver};
use crate::pool::{Origin, adapted_id};
use crate::samples::{FileSample, RecordPlace};
use crate::wire::number_of;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use kernels::simd;
use lm::hub::DownloadProgress;
use lm::models::checkpoint::Checkpoint;
use lm::models::device::ComputeDevice;
use lm::models::tuning::{LoraSettings, OptimizerSettings, StepReport};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tempfile::TempDir;

#[derive(Args)]
pub struct FinetuneArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Column or field of the labels; by default `label`. A text that is labelled a member is refused.
    #[arg(long, value_name = "NAME", help_heading = "Texts")]
    label_column: Option<String>,
    /// Model to tune: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the default model of the settings.
    #[arg(long, help_heading = "Model")]
    model: Option<String>,
    /// Directory to write the adapter to, as PEFT saves one. It must not exist.
    #[arg(long, value_name = "DIRECTORY")]
    output: PathBuf,
    /// Seed of the order of the texts, the initial values and the dropped inputs: the same one gives the same adapter.
    #[arg(long, value_name = "NUMBER", help_heading = "Tuning", default_value_t = 42)]
    seed: u64,
    /// Rank of the changes.
    #[arg(long, value_name = "NUMBER", help_heading = "Adapter", default_value_t = LoraSettings::default().rank)]
    rank: usize,
    /// The changes are scaled by alpha / rank.
    #[arg(long, value_name = "NUMBER", help_heading = "Adapter", default_value_t = LoraSettings::default().alpha)]
    alpha: f64,
    /// Share of the inputs of every change that is dropped at a step.
    #[arg(long, value_name = "SHARE", help_heading = "Adapter", default_value_t = LoraSettings::default().dropout)]
    dropout: f64,
    /// Modules to change, such as `q_proj`; by default those that PEFT chooses for the family.
    #[arg(long, value_name = "NAME", help_heading = "Adapter", value_delimiter = ',')]
    target_modules: Option<Vec<String>>,
    /// Number of epochs.
    #[arg(long, value_name = "NUMBER", help_heading = "Tuning", default_value_t = OptimizerSettings::default().epochs)]
    epochs: usize,
    /// Texts of a step.
    #[arg(long, value_name = "NUMBER", help_heading = "Tuning", default_value_t = OptimizerSettings::default().batch_size)]
    batch_size: usize,
    /// Maximum number of tokens of a text; the rest is cut off.
    #[arg(long, value_name = "NUMBER", help_heading = "Tuning", default_value_t = OptimizerSettings::default().max_length)]
    max_length: usize,
    /// Peak learning rate of AdamW; it rises over the warm-up and falls along half a cosine.
    #[arg(long, value_name = "RATE", help_heading = "Tuning", default_value_t = OptimizerSettings::default().learning_rate)]
    learning_rate: f64,
    /// Steps over which the learning rate rises.
    #[arg(long, value_name = "NUMBER", help_heading = "Tuning", default_value_t = OptimizerSettings::default().warmup_steps)]
    warmup_steps: usize,
    /// Decoupled weight decay.
    #[arg(long, value_name = "NUMBER", help_heading = "Tuning", default_value_t = OptimizerSettings::default().weight_decay)]
    weight_decay: f64,
    #[command(flatten)]
    report: ReportArgs,
}

/// Tunes an adapter on the texts of a file.
pub fn run(args: FinetuneArgs, config: Option<&Path>) -> Result<()> {
    let output = &args.output;
    ensure!(!output.exists(), "{} exists already", output.display());
    // A place that cannot be written is found now rather than after the tuning.
    let partial = partial(output).with_context(|| format!("cannot write {}", output.display()))?;
    let flags = ModelFlags { models: args.model.iter().cloned().collect(), ..ModelFlags::default() };
    let (settings, named) = load_settings(&flags, config, &args.input.files())?;
    simd::force_from_environment().map_err(anyhow::Error::msg)?;
    let texts = texts(&args)?;
    let id = named.first().map(String::as_str).or(settings.default_model());
    let id = id.context("there is no default model; name one with --model")?;
    let origin = Origin::from_settings(&settings, id)?.with_context(|| format!("model `{id}` is not configured"))?;
    let hub = app::hub();
    let files = origin.locate(hub.as_ref(), &DownloadProgress::default()).with_context(|| format!("model `{id}`"))?;
    let device = ComputeDevice::open(settings.engine.device)?;
    let base = TuningBase { files: files.files, origin, device: device.device };
    let base_digest = Checkpoint::open(&base.files)?.digest()?;
    demo_model::announce(&settings, id);
    let request = args.request(id);
    let progress = Progress::new(None);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(settings.engine.threads).build()?;
    let mut watch = StepWatch { progress, began: None };
    let tuned = threads.install(|| finetunes::run(&request, &base, &texts, &mut watch));
    let ended = Instant::now();
    let StepWatch { progress, began } = watch;
    drop(progress);
    let tuned = tuned?;
    write(output, partial, &tuned.files).with_context(|| format!("cannot write {}", output.display()))?;
    let after_first = tuned.steps.iter().skip(1).map(|step| step.tokens).sum::<usize>() as f64;
    let seconds = began.map_or(0.0, |began| ended.duration_since(began).as_secs_f64());
    let rate = if after_first > 0.0 { format!(", {:.0} tokens/s", after_first / seconds) } else { String::new() };
    eprintln!("{}{rate}; {}", number_of(texts.len(), "text"), output.display());
    let report = FinetuneReport::new(adapted_id(id, &request.name), base_digest, &tuned);
    args.report.print(&serde_json::to_value(report)?, |report, _| summary(report))
}

/// The report of a fine-tune in one line.
pub fn summary(results: &Value) -> String {
    let steps = results["steps"].as_array().map_or(&[][..], Vec::as_slice);
    let loss = |step: Option<&Value>| step.and_then(|step| step["loss"].as_f64()).unwrap_or(f64::NAN);
    let (adapter, count) = (results["adapter"].as_str().unwrap_or_default(), number_of(steps.len(), "step"));
    format!("{adapter}: {count}, loss {:.4} to {:.4}\n", loss(steps.first()), loss(steps.last()))
}

/// Shows every step.
struct StepWatch {
    progress: Progress,
    /// When the first step was done: loading is over with it, and it warms the caches up.
    began: Option<Instant>,
}

impl TuningObserver for StepWatch {
    fn after_step(&mut self, step: &StepReport, steps: usize) {
        self.began.get_or_insert_with(Instant::now);
        self.progress.set_length(steps as u64);
        self.progress.show(Some(step.step as u64), format!("step {} of {steps}, loss {:.4}", step.step, step.loss));
    }
}

/// The texts of the file; a member among them is refused, for what is tuned on it tells nothing of it any more.
fn texts(args: &FinetuneArgs) -> Result<Vec<String>> {
    let read = args.input.samples(&args.input.reader.options(None, true, args.label_column.clone()))?;
    let file = args.input.file.display();
    let text = |(place, FileSample { sample, .. }): (RecordPlace, FileSample)| match (
        sample.label_error(),
        sample.is_member(),
    ) {
        (Some(fault), _) => bail!("{file}: {place}: {fault}"),
        (None, Some(true)) => {
            bail!("{file}: {place}: a member; the model is to be tuned on texts that it has not seen")
        }
        (None, _) if sample.context.is_some() || sample.spans.is_some() => {
            bail!("{file}: {place}: `context` or `spans`; a fine-tune takes whole texts: leave them out")
        }
        (None, Some(false) | None) => Ok(sample.text),
    };
    read.into_iter().map(text).collect()
}

impl FinetuneArgs {
    fn request(&self, id: &str) -> FinetuneRequest {
        FinetuneRequest {
            model: id.to_owned(),
            name: self.output.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            lora: LoraSettings {
                rank: self.rank,
                alpha: self.alpha,
                dropout: self.dropout,
                target_modules: self.target_modules.clone(),
            },
            optimizer: OptimizerSettings {
                epochs: self.epochs,
                batch_size: self.batch_size,
                max_length: self.max_length,
                learning_rate: self.learning_rate,
                warmup_steps: self.warmup_steps,
                weight_decay: self.weight_decay,
                ..OptimizerSettings::default()
            },
            seed: self.seed,
        }
    }
}

/// A directory beside the output, which is deleted unless it gets the name of the output.
fn partial(output: &Path) -> std::io::Result<TempDir> {
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new().prefix(".adapter-").tempdir_in(parent)
}

/// Writes the files into the directory, which then gets its name: the output is whole or not there.
fn write(output: &Path, partial: TempDir, files: &[(&str, Vec<u8>)]) -> std::io::Result<()> {
    for (name, content) in files {
        fs::write(partial.path().join(name), content)?;
    }
    fs::rename(partial.path(), output)?;
    // It has moved: there is nothing to delete.
    let _ = partial.keep();
    Ok(())
}
