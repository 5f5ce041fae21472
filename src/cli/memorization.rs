//! `pdr-audit memorization`: texts in, how much of them a model completes out.

use super::input::InputArgs;
use super::progress::{self, Progress};
use super::report_format::ReportArgs;
use super::scoring_args::{load_settings, variant};
use super::source::SampleSource;
use super::{corpus, demo_model, memorization_table, scoring_args};
use crate::app;
use crate::config::{Dtype, ModelFlags, Settings};
use crate::datasets::{Sample, SampleBlocks, SampleTotals};
use crate::memorization::{
    self, MemorizationError, MemorizationProgress, MemorizationReport, MemorizationRequest, WindowScorer, WindowShape,
    WorkText,
};
use crate::scorer::Scorer;
use crate::wire::number_of;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use documents::{Cut, MAX_WORDS};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct MemorizationArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Texts like those of FILE that the model cannot have seen, read in the same way.
    #[arg(long, value_name = "FILE", help_heading = "Texts")]
    control: Option<PathBuf>,
    /// Tokens of a window that the model is given.
    #[arg(long, value_name = "NUMBER", help_heading = "Windows", default_value_t = WindowShape::default().prefix)]
    prefix: usize,
    /// Tokens that it is to continue with.
    #[arg(long, value_name = "NUMBER", help_heading = "Windows", default_value_t = WindowShape::default().suffix)]
    suffix: usize,
    /// Tokens from the beginning of a window to that of the next.
    #[arg(long, value_name = "NUMBER", help_heading = "Windows", default_value_t = WindowShape::default().stride)]
    stride: usize,
    #[command(flatten)]
    report: ReportArgs,
    /// Model to ask: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the default model of the settings.
    #[arg(long, help_heading = "Model")]
    model: Option<String>,
    /// Data type that the model computes in.
    #[arg(long, value_name = "TYPE", help_heading = "Model", value_parser = variant::<Dtype>())]
    dtype: Option<Dtype>,
    /// LoRA adapter of the model, as PEFT saves it: a directory, or a name and a directory. `--model MODEL:NAME` asks the model
    /// under it.
    #[arg(long, value_name = "[NAME=]DIRECTORY", help_heading = "Model")]
    adapter: Vec<String>,
}

/// Measures the texts of a file.
pub async fn run(args: MemorizationArgs, config: Option<&Path>) -> Result<()> {
    let windows = WindowShape { prefix: args.prefix, suffix: args.suffix, stride: args.stride };
    if let [fault, ..] = &*windows.faults() {
        bail!("--{}: {}", fault.pointer.trim_start_matches('/'), fault.detail);
    }
    let (texts, totals) = read_texts(&args.input)?;
    let control = match &args.control {
        Some(file) => {
            read_texts(&InputArgs { file: file.clone(), more: Vec::new(), reader: args.input.reader.clone() })?.0
        }
        None => Vec::new(),
    };
    let models = args.model.iter().cloned().collect();
    let flags = ModelFlags { models, reference: None, dtype: args.dtype, adapters: args.adapter };
    let (settings, named) = load_settings(&flags, config, &args.input.files())?;
    let scorer = app::make_scorer(&settings, app::hub())?;
    let model = scorer.pool().find(named.first().map(String::as_str))?.id.clone();
    let request = MemorizationRequest { model, windows, control };
    if let Some(fault) = request.texts_fault(&totals) {
        bail!("{}: {fault}", args.input.file.display());
    }
    let report = report(&request, texts, &settings, &scorer).await;
    scoring_args::finish(&scorer).await;
    args.report.print(&report?, memorization_table::render)
}

/// Loads the model, and asks it.
async fn report(
    request: &MemorizationRequest,
    texts: Vec<WorkText>,
    settings: &Settings,
    scorer: &Scorer,
) -> Result<MemorizationReport> {
    let (id, pool) = (&request.model, scorer.pool());
    progress::for_models(pool, pool.load(id)).await.with_context(|| format!("model `{id}`"))?;
    demo_model::announce(settings, id);
    let target = WindowScorer::open(scorer, id).await.map_err(explained)?;
    let sample = |WorkText { id, text }| Sample { id, text, ..Sample::default() };
    let samples = SampleBlocks::Memory(texts.into_iter().map(sample).collect());
    let progress = Progress::new(None);
    let show = |MemorizationProgress { windows, total_windows, .. }: MemorizationProgress| {
        progress.set_length(total_windows as u64);
        progress.show(Some(windows as u64), format!("{windows} of {}", number_of(total_windows, "window")));
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

/// Returns true if documents are read and not a file of samples.
///
/// # Errors
/// Where the file cannot be read, or flags do not fit a document.
fn is_document(args: &InputArgs) -> Result<bool> {
    if SampleSource::is_on_hub(&args.file) {
        return Ok(false);
    }
    if !args.more.is_empty() || args.file.is_dir() {
        return Ok(true);
    }
    let are_samples = corpus::is_file_of_samples(&args.file, &args.reader);
    Ok(!are_samples.with_context(|| args.unreadable())?)
}

/// The texts of files of samples, or the documents of paths, whole but for what is not their author's. The id of a document is its name.
///
/// # Errors
/// Where a file cannot be read, a record is no sample, or there is none.
fn read_texts(args: &InputArgs) -> Result<(Vec<WorkText>, SampleTotals)> {
    let is_document = is_document(args)?;
    let mut options = args.reader.options(None, is_document, None);
    if is_document {
        options.cut = Some(Cut { words: MAX_WORDS, ..Cut::default() });
    }
    let read = args.samples(&options)?;
    ensure!(!read.is_empty(), "{}: there are no texts", args.file.display());
    let totals = SampleTotals::count(read.iter().map(|(_, read)| &read.sample))?;
    let work =
        |Sample { id, document, text, .. }: Sample| WorkText { id: id.or(document.filter(|_| is_document)), text };
    Ok((read.into_iter().map(|(_, read)| work(read.sample)).collect(), totals))
}
