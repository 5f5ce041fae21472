//! `pdr-audit count-tokens`: a corpus in, how often each token stands in it out. In constant memory, on all cores.

use super::corpus::{self, Text};
use super::input::ReaderArgs;
use super::progress::{self, Progress};
use super::runtime::block_on;
use super::scoring_args::load_settings;
use crate::app;
use crate::config::{ModelFlags, Settings};
use crate::new_file::NewFile;
use crate::pool::Origin;
use crate::scorer::{CountsFile, FORMAT};
use crate::wire::number_of;
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use lm::hub::DownloadProgress;
use lm::tokenizer::Tokenizer;
use rayon::prelude::*;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Args)]
pub struct CountTokensArgs {
    /// NDJSON (`.jsonl`, `.ndjson`), a JSON array (`.json`), CSV with a header (`.csv`, `.tsv`) or Parquet (`.parquet`), with
    /// `text` (or `input`); any other file as plain text; any of them compressed with gzip or zstd; `-` for samples on standard
    /// input.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    reader: ReaderArgs,
    /// Model whose tokenizer counts: the id of a configured model, a directory, or a repository on the Hub as in
    /// `EleutherAI/pythia-160m@REVISION`; by default the default model of the settings.
    #[arg(long)]
    model: Option<String>,
    /// Write the counts to this file; by default to standard output.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Counts the tokens of files. A fault in any of them is an error, and nothing is written.
pub fn run(args: CountTokensArgs, config: Option<&Path>) -> Result<()> {
    let files: Vec<&Path> = args.files.iter().map(PathBuf::as_path).collect();
    let flags = ModelFlags { models: args.model.into_iter().collect(), ..ModelFlags::default() };
    let (settings, named) = load_settings(&flags, config, &files)?;
    let size = size(&args.files)?;
    if let Some(output) = &args.output {
        // A place that cannot be written is found now rather than after hours.
        drop(new_file(output)?);
    }
    let (model, tokenizer) = block_on(tokenizer(&settings, named.first().map(String::as_str)))?;
    let limit = settings.server.body_limit.as_u64();
    let texts = args.files.iter().flat_map(|file| texts(file, &args.reader, limit));
    let threads = rayon::ThreadPoolBuilder::new().num_threads(settings.engine.threads).build()?;
    let (tally, progress) = (Tally::new(tokenizer), Progress::new(size));
    threads.install(|| tally.add(shown(texts, &progress)))?;
    drop(progress);
    let mut json = serde_json::to_vec(&tally.finish(model)?)?;
    json.push(b'\n');
    match args.output {
        Some(output) => new_file(&output)?.write(&json).with_context(|| format!("cannot write {}", output.display())),
        None => Ok(stdout().lock().write_all(&json)?),
    }
}

fn new_file(path: &Path) -> Result<NewFile> {
    NewFile::create(path).with_context(|| format!("cannot write {}", path.display()))
}

/// The bytes of all files, where that is known.
fn size(files: &[PathBuf]) -> Result<Option<u64>> {
    let mut sum = Some(0u64);
    for file in files {
        let size = (file != Path::new("-")).then(|| std::fs::metadata(file)).transpose();
        let size = size.with_context(|| format!("cannot read {}", file.display()))?;
        sum = sum.zip(size).map(|(sum, data)| sum.saturating_add(data.len()));
    }
    Ok(sum)
}

/// The tokenizer of a configured model, with the model's id.
async fn tokenizer(settings: &Settings, model: Option<&str>) -> Result<(String, Tokenizer)> {
    let id = model.or(settings.default_model()).context("there is no default model; name one with --model")?;
    let origin = Origin::from_settings(settings, id)?.with_context(|| format!("model `{id}` is not configured"))?;
    let progress = Arc::new(DownloadProgress::default());
    let opening = tokio::task::spawn_blocking({
        let progress = Arc::clone(&progress);
        move || origin.tokenizer(app::hub().as_ref(), &progress)
    });
    let opened = progress::showing(|| Some(progress::opening(id, &progress)), opening).await?;
    let tokenizer = opened.with_context(|| format!("model `{id}`"))?;
    Ok((id.to_owned(), tokenizer))
}

/// The texts of a file, with the file's name to each fault.
fn texts<'a>(
    file: &'a Path,
    reader: &'a ReaderArgs,
    limit: u64,
) -> impl Iterator<Item = Result<(&'a Path, Text)>> + Send {
    let (texts, fault) = match corpus::open(file, reader, limit) {
        Ok(texts) => (Some(texts), None),
        Err(fault) => (None, Some(Err(fault))),
    };
    let all = fault.into_iter().chain(texts.into_iter().flatten());
    all.map(move |text| Ok((file, text.with_context(|| format!("cannot read {}", file.display()))?)))
}

/// The same texts, while a bar shows how many there were.
fn shown<'t>(
    texts: impl Iterator<Item = Result<(&'t Path, Text)>> + Send,
    progress: &Progress,
) -> impl Iterator<Item = Result<(&'t Path, Text)>> + Send {
    (1u64..).zip(texts).map(move |(number, text)| {
        progress.inc(text.as_ref().map_or(0, |(_, text)| text.bytes));
        progress.show(None, number_of(number, "text"));
        text
    })
}

/// Counts that many threads add to.
struct Tally {
    tokenizer: Tokenizer,
    texts: AtomicU64,
    counts: Vec<AtomicU64>,
}

impl Tally {
    fn new(tokenizer: Tokenizer) -> Self {
        let counts = (0..tokenizer.id_bound()).map(|_| AtomicU64::new(0)).collect();
        Self { tokenizer, texts: AtomicU64::new(0), counts }
    }

    /// Counts the tokens of texts on all threads; one thread at a time takes the next text.
    fn add<'t>(&self, texts: impl Iterator<Item = Result<(&'t Path, Text)>> + Send) -> Result<()> {
        texts.par_bridge().try_for_each(|text| {
            let (file, Text { place, text, .. }) = text?;
            let place = || format!("{}: the text at {place}", file.display());
            for id in self.tokenizer.plain_ids(&text).with_context(place)? {
                let count = self.counts.get(id as usize);
                count.ok_or_else(|| anyhow!("the tokenizer gives the unknown id {id}"))?.fetch_add(1, Relaxed);
            }
            self.texts.fetch_add(1, Relaxed);
            Ok(())
        })
    }

    fn finish(self, model: String) -> Result<CountsFile> {
        let counts: Vec<u64> = self.counts.into_iter().map(AtomicU64::into_inner).collect();
        let (texts, tokens) = (self.texts.into_inner(), counts.iter().sum());
        ensure!(tokens > 0, "there are no tokens in {}", number_of(texts, "text"));
        let tokenizer = self.tokenizer.fingerprint()?.to_owned();
        Ok(CountsFile { format: FORMAT.to_owned(), tokenizer, model, texts, tokens, counts })
    }
}
