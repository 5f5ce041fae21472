//! `pdr-audit memorization`: texts in, how much of them a model completes out.

use super::input::InputArgs;
use super::progress::{self, Progress};
use super::report_format::ReportArgs;
use super::scoring_args::{load_settings, variant};
use super::source::SampleSource;
use super::{corpus, demo_model, memorization_table, scoring_args};
use crate::app;
use crate::config::{Dtype, LayersChoice, ModelFlags, Settings};
use crate::datasets::{Sample, SampleBlocks, SampleTotals};
use crate::memorization::{
    self, ContinuationSettings, MapFormat, MapSource, MemorizationError, MemorizationProgress, MemorizationReport,
    MemorizationRequest, PassCost, RowPlace, SeedPassage, WindowPasses, WindowScorer, WindowShape, WorkText,
};
use crate::new_file::NewFile;
use crate::scorer::Scorer;
use crate::wire::number_of;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use documents::{Cut, MAX_WORDS};
use std::cell::Cell;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub struct MemorizationArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Texts like those of FILE that the model cannot have seen, read in the same way: a file, or a folder of works.
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
    /// Forward passes of overlapping windows: `shared`, where a window is given up to twice --prefix tokens, or `separate`, where each
    /// is a pass of its own and is given exactly --prefix tokens.
    #[arg(long, value_name = "PASSES", help_heading = "Windows", value_parser = variant::<WindowPasses>(), default_value = "shared")]
    passes: WindowPasses,
    /// Continue each text greedily, by up to this many tokens, from the prefix of a window, and show how much of the text comes
    /// back near-verbatim.
    #[arg(long = "continue", value_name = "TOKENS", help_heading = "Continuation")]
    continue_by: Option<usize>,
    /// Window whose prefix is continued: `most_probable`, with the largest log p, or `start`, the first.
    #[arg(long, value_name = "WINDOW", help_heading = "Continuation", requires = "continue_by", value_parser = variant::<SeedPassage>(), default_value = "most_probable")]
    continue_from: SeedPassage,
    /// Least number of matching words of a near-verbatim block; 100, or --continue if that is less, by default.
    #[arg(long, value_name = "NUMBER", help_heading = "Continuation", requires = "continue_by")]
    least_words: Option<usize>,
    #[command(flatten)]
    report: ReportArgs,
    /// File to write all windows to, along each text: `.csv` or `.ndjson`.
    #[arg(long, value_name = "FILE", help_heading = "Output", value_parser = map_file)]
    map: Option<MapFile>,
    /// Have the text of each longest run in the report.
    #[arg(long, help_heading = "Output")]
    run_text: bool,
    /// Model to ask: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the default model of the settings.
    #[arg(long, help_heading = "Model")]
    model: Option<String>,
    /// Data type that the model computes in.
    #[arg(long, value_name = "TYPE", help_heading = "Model", value_parser = variant::<Dtype>())]
    dtype: Option<Dtype>,
    /// Where the layers of the model are while it runs: in memory, or on disk, from which every forward pass reads them.
    #[arg(long, value_name = "PLACE", help_heading = "Model", value_parser = variant::<LayersChoice>())]
    layers: Option<LayersChoice>,
    /// LoRA adapter of the model, as PEFT saves it: a directory, or a name and a directory. `--model MODEL:NAME` asks the model
    /// under it.
    #[arg(long, value_name = "[NAME=]DIRECTORY", help_heading = "Model")]
    adapter: Vec<String>,
}

/// File that a map is written to.
#[derive(Clone, Debug)]
struct MapFile {
    path: PathBuf,
    format: MapFormat,
}

fn map_file(path: &str) -> Result<MapFile, String> {
    let path = PathBuf::from(path);
    let extension = path.extension().map(|extension| extension.to_ascii_lowercase());
    match extension.as_ref().and_then(|extension| extension.to_str()) {
        Some("csv") => Ok(MapFile { path, format: MapFormat::Csv }),
        Some("ndjson" | "jsonl") => Ok(MapFile { path, format: MapFormat::Ndjson }),
        _ => Err("expected a file that ends in .csv, .ndjson or .jsonl".to_owned()),
    }
}

impl MapFile {
    /// Begins the file, so that a file that cannot be written is known before anything is scored.
    fn create(&self) -> Result<NewFile> {
        NewFile::create(&self.path).with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn write(&self, file: NewFile, report: &MemorizationReport) -> Result<()> {
        let mut out = BufWriter::new(file.file());
        out.write_all(self.format.header().as_bytes())?;
        // The service makes its answer from the JSON of a report, too.
        let source = MapSource::parse(&serde_json::to_string(report)?)?;
        for (row, _) in source.rows(RowPlace::default()) {
            out.write_all(&self.format.line(row)?)?;
        }
        out.flush()?;
        drop(out);
        file.complete().with_context(|| format!("cannot write {}", self.path.display()))
    }
}

/// Measures the texts of a file.
pub async fn run(args: MemorizationArgs, config: Option<&Path>) -> Result<()> {
    let windows = WindowShape { prefix: args.prefix, suffix: args.suffix, stride: args.stride, passes: args.passes };
    if let [fault, ..] = &*windows.faults() {
        bail!("--{}: {}", fault.pointer.trim_start_matches('/'), fault.detail);
    }
    let (from, least_words) = (args.continue_from, args.least_words);
    let continuation = args.continue_by.map(|tokens| ContinuationSettings { tokens, from, least_words });
    if let Some(fault) = continuation.iter().flat_map(ContinuationSettings::faults).next() {
        let flag = if fault.pointer == "/tokens" { "--continue" } else { "--least-words" };
        bail!("{flag}: {}", fault.detail);
    }
    let (texts, totals) = read_texts(&args.input)?;
    let control = match &args.control {
        Some(file) => {
            read_texts(&InputArgs { file: file.clone(), more: Vec::new(), reader: args.input.reader.clone() })?.0
        }
        None => Vec::new(),
    };
    let models = args.model.iter().cloned().collect();
    let flags = ModelFlags { models, reference: None, dtype: args.dtype, layers: args.layers, adapters: args.adapter };
    let (settings, named) = load_settings(&flags, config, &args.input.files())?;
    let scorer = app::make_scorer(&settings, app::hub())?;
    let model = scorer.pool().find(named.first().map(String::as_str))?.id.clone();
    let request = MemorizationRequest { model, windows, run_text: args.run_text, continuation, control };
    if let Some(fault) = request.texts_fault(&totals) {
        bail!("{}: {fault}", args.input.file.display());
    }
    let map = args.map.as_ref().map(|map| Ok::<_, anyhow::Error>((map, map.create()?))).transpose()?;
    let report = report(&request, texts, &settings, &scorer).await;
    scoring_args::finish(&scorer).await;
    let report = report?;
    if let Some((map, file)) = map {
        map.write(file, &report)?;
    }
    args.report.print(&report, memorization_table::render)
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
    let told = Cell::new(false);
    let show = |MemorizationProgress { windows, total_windows, cost, .. }: MemorizationProgress| {
        if !told.replace(true) {
            progress.tell(&estimate(total_windows, cost));
        }
        progress.set_length(total_windows as u64);
        progress.show(Some(windows as u64), format!("{windows} of {}", number_of(total_windows, "window")));
    };
    memorization::run(request, &samples, &target, show).await.map_err(explained)
}

/// The line about the work, before it begins.
fn estimate(windows: usize, cost: PassCost) -> String {
    let (windows, tokens) = (number_of(windows, "window"), number_of(cost.tokens, "token"));
    format!("{windows}, scored in passes of {tokens}: {:.1} for each token of the texts", cost.passes_over_texts)
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
