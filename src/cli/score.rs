//! `pdr-audit score`: texts in, results out, in order and in constant memory.

use super::input::{InputArgs, tell_documents};
use super::progress::{self, Progress};
use super::runtime::interrupted;
use super::score_output::{Results, ScoreOutputArgs};
use super::score_tally::ScoreTally;
use super::scoring_args::{self, ScoringArgs};
use super::source::SampleSource;
use crate::config::Settings;
use crate::samples::{BadRecord, FileRecords, FileSample, ReadError, ReadOptions, RecordPlace};
use crate::scorer::{Bound, IN_FLIGHT, Plan, Scorer, ScorerError, TextError, TextResult};
use crate::table::ResultRow;
use crate::wire::number_of;
use anyhow::{Context, Result, anyhow, ensure};
use clap::Args;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use mia::methods::possible_default_methods;
use serde_json::Value;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::mpsc;

#[derive(Args)]
pub struct ScoreArgs {
    #[command(flatten)]
    input: InputArgs,
    /// List every token with its statistics and its contributions to the scores.
    #[arg(long, help_heading = "Output")]
    tokens: bool,
    #[command(flatten)]
    output: ScoreOutputArgs,
    /// Fail where any text could not be scored; by default only where none could.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    scoring: ScoringArgs,
}

/// Item that the reading thread hands over: a text or its fault, and its place.
struct ReadText {
    text: Result<FileSample, BadRecord>,
    place: RecordPlace,
    /// Amount of the file read so far.
    position: u64,
}

/// Scores a file.
pub async fn run(args: ScoreArgs, config: Option<&Path>) -> Result<()> {
    let settings = args.scoring.settings(config, &args.input.files())?;
    let input = args.input.clone();
    let source = tokio::task::spawn_blocking(move || input.source()).await??;
    let size = source.size();
    ensure!(
        !args.output.resume || size.is_some(),
        "--resume needs one file: a pipe is read only once, and the files of a folder may change"
    );
    let mut options = args.input.reader.options(Some(settings.0.server.body_limit.as_u64()), false, None);
    options.columns.chat = Some(scoring_args::chat_renderer(&settings));
    // A file that has no texts is found before a model is loaded, and before anything is written.
    let reading = tokio::task::spawn_blocking({
        let (source, options) = (source.clone(), options.clone());
        move || source.records(&options)
    });
    let records = reading.await?.with_context(|| args.input.unreadable())?;
    let (scorer, plan) = args.scoring.start(&settings, false, false, possible_default_methods).await?;
    let plan = Plan { tokens: args.tokens, ..plan };
    let scored = score(args, records, &source, options, &settings.0, &scorer, &plan).await;
    scoring_args::finish(&scorer).await;
    scored
}

/// Scores the texts of a source.
async fn score(
    args: ScoreArgs,
    mut records: FileRecords,
    source: &SampleSource,
    options: ReadOptions,
    settings: &Settings,
    scorer: &Scorer,
    plan: &Plan,
) -> Result<()> {
    let bound = progress::for_models(scorer.pool(), scorer.bind(plan)).await.map_err(scoring_args::explained)?;
    let mut tally = ScoreTally::default();
    let size = source.size();
    let mut results = Results::open(&args.output, &args.input, source, settings, &bound, plan)?;
    results.resume(&mut tally, &mut records, &args.input)?;
    let first = tally.total();

    let (sender, mut receiver) = mpsc::channel(IN_FLIGHT);
    let (strict, unreadable, file) = (args.strict, args.input.unreadable(), args.input.file.display().to_string());
    let input = args.input;
    let reading = tokio::task::spawn_blocking(move || read(records, &options, &input, &sender));
    let items = stream::poll_fn(move |context| receiver.poll_recv(context)).enumerate();
    let mut scored = items.map(|(index, item)| one(scorer, &bound, first + index, item)).buffered(IN_FLIGHT);
    let progress = Progress::new(size);
    let mut interrupt = pin!(interrupted());
    loop {
        let next = match scored.try_next().now_or_never() {
            Some(next) if (&mut interrupt).now_or_never().is_none() => next?,
            Some(_) => return Err(stopped(results, tally.total())),
            // Whoever reads our output may wait for what is ready before it sends more.
            None => {
                results.flush()?;
                tokio::select! {
                    next = scored.try_next() => next?,
                    () = &mut interrupt => return Err(stopped(results, tally.total())),
                }
            }
        };
        let Some((row, place, position)) = next else { break };
        results.write(&row, place)?;
        tally.add(place, &row);
        progress.show(size.map(|_| position), number_of(tally.total(), "text"));
    }
    results.flush()?;
    drop(progress);
    reading.await?.with_context(|| unreadable)?;
    ensure!(tally.total() > 0, "{file}: there are no texts");
    let labels: Vec<String> = plan.methods.iter().map(|method| method.label.to_string()).collect();
    results.finish(&labels)?;
    tally.conclude(strict)
}

/// The error of a command that was interrupted after so many texts, with what is kept.
fn stopped(mut results: Results, total: usize) -> anyhow::Error {
    let scored = format!("interrupted after {}", number_of(total, "text"));
    match (results.flush(), results.partial()) {
        (Err(error), _) => error.context(scored),
        (Ok(()), Some(file)) => {
            anyhow!("{scored}; their results are in {}, and --resume goes on there", file.display())
        }
        (Ok(()), None) => anyhow!("{scored}; with --output FILE a run can be resumed"),
    }
}

/// Reads the texts that are left.
fn read(
    records: FileRecords,
    options: &ReadOptions,
    args: &InputArgs,
    sender: &mpsc::Sender<ReadText>,
) -> Result<(), ReadError> {
    for record in records {
        let record = record?;
        let (place, position) = (record.place, record.position);
        let text = args.reader.scored_sample(record, options);
        if sender.blocking_send(ReadText { text, place, position }).is_err() {
            // The other side has stopped, and says why.
            break;
        }
    }
    tell_documents(options);
    Ok(())
}

/// The fields that came along, then those of the result.
async fn one(
    scorer: &Scorer,
    bound: &Arc<Bound>,
    index: usize,
    ReadText { text, place, position }: ReadText,
) -> Result<(ResultRow, RecordPlace, u64), ScorerError> {
    let (results, mut row) = match text {
        // The id is among the other fields, as it was given.
        Ok(FileSample { sample, others }) => (scorer.score_behind(bound, sample.into_input()).await?.results, others),
        Err(BadRecord { fault, others }) => (vec![TextResult::failed(TextError::whole("invalid_line", fault))], others),
    };
    for result in results {
        let value = serde_json::to_value(&result).map_err(|e| ScorerError::Internal(e.to_string()))?;
        row.extend(object(value));
    }
    // A text scored alone is always the first of its request.
    row.insert("index".into(), index.into());
    Ok((row, place, position))
}

fn object(value: Value) -> ResultRow {
    match value {
        Value::Object(object) => object,
        _ => ResultRow::new(),
    }
}
