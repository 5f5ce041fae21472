//! `pdr-audit memorization`: texts in, how much of them a model completes out.

use super::input::InputArgs;
use super::progress::{self, Progress};
use super::report_format::{self, ReportFormat};
use super::scoring_args::{load_settings, variant};
use super::source::SampleSource;
use super::{corpus, demo_model, scoring_args};
use crate::app;
use crate::config::{Dtype, ModelFlags, Settings};
use crate::datasets::{Sample, SampleBlocks, SampleId};
use crate::memorization::{
    self, ExtractionSummary, MemorizationError, MemorizationProgress, MemorizationReport, MemorizationRequest,
    TextExtraction, WindowScorer, WindowShape, WorkText,
};
use crate::scorer::Scorer;
use crate::wire::number_of;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use std::fmt::Write;
use std::path::{Path, PathBuf};

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
    format: Option<ReportFormat>,
    /// Model to ask: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the default model of the settings.
    #[arg(long)]
    model: Option<String>,
    /// Data type that the model computes in.
    #[arg(long, value_name = "TYPE", value_parser = variant::<Dtype>())]
    dtype: Option<Dtype>,
    /// LoRA adapter of the model, as PEFT saves it: a directory, or a name and a directory. `--model MODEL:NAME` asks the model
    /// under it.
    #[arg(long, value_name = "[NAME=]DIRECTORY")]
    adapter: Vec<String>,
}

/// Measures the texts of a file.
pub async fn run(args: MemorizationArgs, config: Option<&Path>) -> Result<()> {
    let windows = WindowShape { prefix: args.prefix, suffix: args.suffix, stride: args.stride };
    if let [fault, ..] = &*windows.faults() {
        bail!("--{}: {}", fault.pointer.trim_start_matches('/'), fault.detail);
    }
    let texts = read_texts(&args.input)?;
    let control = match &args.control {
        Some(file) => read_texts(&InputArgs { file: file.clone(), reader: args.input.reader.clone() })?,
        None => Vec::new(),
    };
    let models = args.model.iter().cloned().collect();
    let flags = ModelFlags { models, reference: None, dtype: args.dtype, adapters: args.adapter };
    let (settings, named) = load_settings(&flags, config, &[&args.input.file])?;
    let scorer = app::make_scorer(&settings, app::hub())?;
    let model = scorer.pool().find(named.first().map(String::as_str))?.id.clone();
    let request = MemorizationRequest { model, windows, control };
    if let Some(fault) = request.texts_fault(texts.len()) {
        bail!("{}: {fault}", args.input.file.display());
    }
    let report = report(&request, texts, &settings, &scorer).await;
    scoring_args::finish(&scorer).await;
    report_format::print(&report?, args.format, table)
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

/// The columns behind the name.
const COLUMNS: [&str; 5] = ["windows", "greedy", "coverage", "largest log p", "tries for 1/2"];

/// A line a text, one for all of them, the same for the control, then what has no windows, and what it all shows.
fn table(report: &MemorizationReport) -> String {
    let WindowShape { prefix, suffix, stride } = report.windows;
    let (mut out, control) = (String::new(), report.control.as_deref().unwrap_or_default());
    // Writing to a String cannot fail.
    let (id, texts) = (&report.model.id, report.texts.len());
    let _ = write!(out, "{id}: texts {texts}, control {}; windows of {prefix} + {suffix} tokens, ", control.len());
    let _ = writeln!(out, "one every {stride}\n");
    let names = report.texts.iter().chain(control).map(|text| name(text).chars().count());
    let width = names.max().unwrap_or(0).max("all texts".len());
    out.push_str(&line("text", &COLUMNS.map(str::to_owned), width));
    part(&mut out, &report.texts, "all texts", &report.summary.texts, width);
    if let Some(summary) = &report.summary.control {
        out.push('\n');
        part(&mut out, control, "control", summary, width);
    }
    for (kind, texts) in [("", report.texts.as_slice()), ("control: ", control)] {
        for (text, error) in texts.iter().filter_map(|text| Some((text, text.error.as_ref()?))) {
            let _ = write!(out, "\n{kind}{}: {}: {}", name(text), error.code, error.detail);
        }
    }
    let _ = writeln!(out, "\n{}", report.summary.reading);
    out
}

/// The lines of some texts, and the one of all of them.
fn part(out: &mut String, texts: &[TextExtraction], all: &str, summary: &ExtractionSummary, width: usize) {
    for text in texts.iter().filter(|text| !text.windows.is_empty()) {
        let largest = text.largest_log_p;
        let tries = text.windows.iter().filter_map(|window| window.tries_for_half).min();
        let cells = cells(text.windows.len(), text.greedy_windows, text.coverage, largest, tries);
        out.push_str(&line(&name(text), &cells, width));
    }
    let ExtractionSummary { windows, greedy_windows, coverage, largest_log_p, tries_for_half, .. } = *summary;
    out.push_str(&line(all, &cells(windows, greedy_windows, coverage, largest_log_p, tries_for_half), width));
}

fn cells(
    windows: usize,
    greedy: usize,
    coverage: Option<f64>,
    largest: Option<f64>,
    tries: Option<u64>,
) -> [String; 5] {
    let none = || "-".to_owned();
    [
        windows.to_string(),
        greedy.to_string(),
        coverage.map_or_else(none, |coverage| format!("{:.1} %", coverage * 100.0)),
        largest.map_or_else(none, |largest| format!("{largest:.2}")),
        tries.map_or_else(none, |tries| tries.to_string()),
    ]
}

fn line(name: &str, cells: &[String; 5], width: usize) -> String {
    let cells: Vec<String> =
        cells.iter().zip(COLUMNS).map(|(cell, head)| format!("{cell:>0$}", head.len().max(8))).collect();
    format!("{name:width$}  {}\n", cells.join("  "))
}

/// The id of a text, or its place.
fn name(text: &TextExtraction) -> String {
    text.id.as_ref().map_or_else(|| format!("text {}", text.index), ToString::to_string)
}

/// The texts of the file. A plain text has the name of its file as id.
///
/// # Errors
/// Where the file cannot be read, a record is no sample, or there is none.
fn read_texts(args: &InputArgs) -> Result<Vec<WorkText>> {
    let plain = match SampleSource::is_on_hub(&args.file) {
        true => None,
        false => {
            let read = args.check_file().and_then(|()| corpus::whole_text(&args.file, &args.reader));
            read.with_context(|| args.unreadable())?
        }
    };
    if let Some(text) = plain {
        let id = args.file.file_name().map(|name| SampleId::Text(name.to_string_lossy().into_owned()));
        return Ok(vec![WorkText { id, text }]);
    }
    let read = args.samples(&args.reader.options(None, false, None))?;
    ensure!(!read.is_empty(), "{}: there are no texts", args.file.display());
    Ok(read.into_iter().map(|(_, read)| WorkText { id: read.sample.id, text: read.sample.text }).collect())
}
