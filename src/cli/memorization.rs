//! `pdr-audit memorization`: texts in, how much of them a model completes out.

use super::input::InputArgs;
use super::progress::Progress;
use super::{memorization_table, scoring_args, waiting, works};
use crate::config::{Dtype, LogFormat, ModelFlags, Overrides, Settings};
use crate::datasets::{Sample, SampleBlocks};
use crate::memorization::{
    self, MemorizationError, MemorizationProgress, MemorizationReport, MemorizationRequest, WindowScorer, WindowShape,
    WorkText,
};
use crate::scorer::Scorer;
use crate::{app, telemetry};
use anyhow::{Context, Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use strum::VariantNames;

#[derive(Args)]
pub struct MemorizationArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Texts like those of FILE that the model cannot have seen, read in the same way.
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Tokens of a window that the model is given.
    #[arg(long, value_name = "NUMBER", default_value_t = WindowShape::default().prefix)]
    prefix: usize,
    /// Tokens that it is to continue with.
    #[arg(long, value_name = "NUMBER", default_value_t = WindowShape::default().suffix)]
    suffix: usize,
    /// Tokens from the beginning of a window to that of the next.
    #[arg(long, value_name = "NUMBER", default_value_t = WindowShape::default().stride)]
    stride: usize,
    /// Format of the report; by default a table on a terminal and JSON elsewhere.
    #[arg(long, value_enum)]
    format: Option<MemorizationFormat>,
    /// Model to ask: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the configured default.
    #[arg(long)]
    model: Option<String>,
    /// Data type that the model computes in.
    #[arg(long, value_name = "TYPE", value_parser = PossibleValuesParser::new(Dtype::VARIANTS).try_map(|name| Dtype::from_str(&name)))]
    dtype: Option<Dtype>,
    /// LoRA adapter of the model, as PEFT saves it: a directory, or a name and a directory. `--model MODEL:NAME` asks the model
    /// under it.
    #[arg(long, value_name = "[NAME=]DIRECTORY")]
    adapter: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum MemorizationFormat {
    Json,
    Table,
}

/// Measures the texts of a file.
pub async fn run(args: MemorizationArgs, config: Option<&Path>) -> Result<()> {
    let windows = WindowShape { prefix: args.prefix, suffix: args.suffix, stride: args.stride };
    if let [fault, ..] = &*windows.faults() {
        bail!("--{}: {}", fault.pointer.trim_start_matches('/'), fault.detail);
    }
    let texts = works::read(&args.input)?;
    let control = match &args.control {
        Some(file) => works::read(&InputArgs { file: file.clone(), reader: args.input.reader.clone() })?,
        None => Vec::new(),
    };
    let models = args.model.iter().cloned().collect();
    let flags = ModelFlags { models, reference: None, dtype: args.dtype, adapters: args.adapter };
    let (settings, named) = Settings::load(config, &Overrides::default())?.with_models(&flags)?;
    telemetry::init_tracing(settings.log.format == LogFormat::Json, "warn")?;
    let scorer = app::make_scorer(&settings, app::hub())?;
    let model = scorer.pool().find(named.first().map(String::as_str))?.id.clone();
    let request = MemorizationRequest { model, windows, control };
    if let Some(fault) = request.texts_fault(texts.len()) {
        bail!("{}: {fault}", args.input.file.display());
    }
    let report = report(&request, texts, &scorer).await;
    scoring_args::finish(&scorer).await;
    let default = if stdout().is_terminal() { MemorizationFormat::Table } else { MemorizationFormat::Json };
    match args.format.unwrap_or(default) {
        MemorizationFormat::Json => writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&report?)?)?,
        MemorizationFormat::Table => write!(stdout().lock(), "{}", memorization_table::render(&report?))?,
    }
    Ok(())
}

/// Loads the model, and asks it.
async fn report(request: &MemorizationRequest, texts: Vec<WorkText>, scorer: &Scorer) -> Result<MemorizationReport> {
    let (id, pool) = (&request.model, scorer.pool());
    waiting::for_models(pool, pool.load(id)).await.with_context(|| format!("model `{id}`"))?;
    let target = WindowScorer::open(scorer, id).await.map_err(explained)?;
    let sample = |WorkText { id, text }| Sample { id, text, ..Sample::default() };
    let samples = SampleBlocks::Memory(texts.into_iter().map(sample).collect());
    let progress = Progress::new(None);
    let show = |MemorizationProgress { windows, total_windows, .. }: MemorizationProgress| {
        progress.set_length(total_windows as u64);
        progress.show(Some(windows as u64), format!("{windows} of {total_windows} windows"));
    };
    memorization::run(request, &samples, &target, show).await.map_err(explained)
}

/// A failure as the command line tells it.
fn explained(error: MemorizationError) -> anyhow::Error {
    match error {
        MemorizationError::Scorer(error) => scoring_args::explained(error),
        error => error.into(),
    }
}
