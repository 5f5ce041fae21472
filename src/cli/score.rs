//! `pdr-audit score`: texts in, results out, in order and in constant memory.

use super::export::{self, result_file};
use super::input::InputArgs;
use super::partial::PartialResults;
use super::progress::{self, Progress};
use super::scoring_args::{self, ScoringArgs};
use super::source::SampleSource;
use crate::config::Settings;
use crate::datasets::Sample;
use crate::samples::{BadRecord, FileRecords, FileSample, ReadError, ReadOptions, RecordPlace};
use crate::scorer::{self, Bound, IN_FLIGHT, Plan, Scorer, ScorerError, TextError, TextResult};
use crate::table::ResultRow;
use crate::wire::number_of;
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use mia::methods::possible_default_methods;
use serde_json::{Value, json};
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

#[derive(Args)]
pub struct ScoreArgs {
    #[command(flatten)]
    input: InputArgs,
    /// List every token with its statistics and its contributions to the scores.
    #[arg(long)]
    tokens: bool,
    /// Write the results to this file: as CSV or Parquet if the name ends in `.csv` or `.parquet`, and as NDJSON if it ends in
    /// `.ndjson` or `.jsonl` or has no extension. The file is written as a whole or not at all.
    #[arg(long, value_name = "FILE", value_parser = result_file())]
    output: Option<PathBuf>,
    /// Go on with what an interrupted run with the same `--output` has left.
    #[arg(long, requires = "output")]
    resume: bool,
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
    let settings = args.scoring.settings(config, &[&args.input.file])?;
    let input = args.input.clone();
    let source = tokio::task::spawn_blocking(move || input.source()).await??;
    let size = source.size();
    ensure!(!args.resume || size.is_some(), "--resume needs a file: a pipe is read only once");
    let options = args.input.reader.options(Some(settings.0.server.body_limit.as_u64()), false, None);
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
    let mut results = Results::open(&args, source, settings, &bound, plan)?;
    results.resume(&mut tally, &mut records, &args.input)?;
    let first = tally.total();

    let (sender, mut receiver) = mpsc::channel(IN_FLIGHT);
    let (strict, unreadable, file) = (args.strict, args.input.unreadable(), args.input.file.display().to_string());
    let input = args.input;
    let reading = tokio::task::spawn_blocking(move || read(records, &options, &input, &sender));
    let items = stream::poll_fn(move |context| receiver.poll_recv(context)).enumerate();
    let mut scored = items.map(|(index, item)| one(scorer, &bound, first + index, item)).buffered(IN_FLIGHT);
    let progress = Progress::new(size);
    loop {
        let next = match scored.try_next().now_or_never() {
            Some(next) => next?,
            // Whoever reads our output may wait for what is ready before it sends more.
            None => {
                results.flush()?;
                scored.try_next().await?
            }
        };
        let Some((row, place, position)) = next else { break };
        results.write(&row)?;
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

/// Where results go.
enum Results {
    Stdout(BufWriter<std::io::StdoutLock<'static>>),
    File(PartialResults),
}

impl Results {
    fn open(args: &ScoreArgs, source: &SampleSource, settings: &Settings, bound: &Bound, plan: &Plan) -> Result<Self> {
        let Some(output) = &args.output else { return Ok(Self::Stdout(BufWriter::new(stdout().lock()))) };
        ensure!(
            !(plan.tokens && export::is_table(Some(output))?),
            "--tokens lists of tokens fit no table; write NDJSON"
        );
        let run = json!({
            "program": concat!("pdr-audit ", env!("CARGO_PKG_VERSION")),
            "file": args.input.file.to_string_lossy(),
            "sha256": source.size().map(|_| source.digest()).transpose().with_context(|| args.input.unreadable())?,
            "input": args.input.reader.describe(),
            "limits": [settings.server.body_limit.as_u64(), settings.limits.text.as_u64()],
            "models": bound.infos(),
            "methods": plan.methods.as_ref(),
            "overflow": plan.overflow,
            "tokens": plan.tokens,
        });
        let Value::Object(run) = run else { return Err(anyhow::anyhow!("a run is described by an object")) };
        Ok(Self::File(PartialResults::open(output, &run, args.resume)?))
    }

    /// Counts what an interrupted run has left, and passes the records that it is of.
    fn resume(&self, tally: &mut ScoreTally, records: &mut FileRecords, input: &InputArgs) -> Result<()> {
        let Self::File(file) = self else { return Ok(()) };
        for (row, record) in file.left()?.zip(records) {
            tally.add(record.with_context(|| input.unreadable())?.place, &row?);
        }
        Ok(())
    }

    fn write(&mut self, row: &ResultRow) -> Result<()> {
        match self {
            Self::Stdout(out) => {
                serde_json::to_writer(&mut *out, row).map_err(std::io::Error::from)?;
                Ok(out.write_all(b"\n")?)
            }
            Self::File(file) => file.write(row),
        }
    }

    fn flush(&mut self) -> Result<()> {
        match self {
            Self::Stdout(out) => Ok(out.flush()?),
            Self::File(file) => file.flush(),
        }
    }

    fn finish(self, labels: &[String]) -> Result<()> {
        match self {
            Self::Stdout(_) => Ok(()),
            Self::File(file) => file.finish(labels),
        }
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
        Ok(FileSample { sample: Sample { text, neighbors, .. }, others }) => {
            (scorer.score_behind(bound, scorer::Input { id: None, text, neighbors }).await?.results, others)
        }
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

/// Counts of results.
#[derive(Debug, Default)]
pub struct ScoreTally {
    total: usize,
    failed: usize,
    /// Fault of the first that failed.
    first: Option<String>,
}

impl ScoreTally {
    /// Counts the result of a text at this place; one without any score has failed.
    pub fn add(&mut self, place: RecordPlace, row: &ResultRow) {
        self.total += 1;
        if row.get("scores").and_then(Value::as_object).is_some_and(|scores| !scores.is_empty()) {
            return;
        }
        self.failed += 1;
        self.first.get_or_insert_with(|| {
            let detail = row.get("errors").and_then(|errors| errors.get(0)?.get("detail")?.as_str());
            let detail = detail.unwrap_or("no method gave a score");
            // A record that is no text names its place itself.
            match row.get("errors").and_then(|errors| errors.get(0)?.get("code")?.as_str()) {
                Some("invalid_line") => detail.to_owned(),
                _ => format!("{place}: {detail}"),
            }
        });
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// Says on stderr how many texts could not be scored.
    ///
    /// # Errors
    /// The same where that are all of them or, if `strict`, any.
    pub fn conclude(self, strict: bool) -> Result<()> {
        let Some(first) = self.first else { return Ok(()) };
        let closing =
            format!("{} of {} could not be scored; first: {first}", self.failed, number_of(self.total, "text"));
        if strict || self.failed == self.total {
            bail!(closing);
        }
        eprintln!("warning: {closing}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tally(rows: &[Value]) -> ScoreTally {
        let mut tally = ScoreTally::default();
        let places = (1..).map(|number| RecordPlace::Line(2 * number));
        places.zip(rows).for_each(|(place, row)| tally.add(place, row.as_object().unwrap()));
        tally
    }

    #[test]
    fn all_failures_are_an_error_and_one_is_if_strict() {
        let scored = json!({"scores": {"loss": -1.0}, "errors": []});
        let short = json!({"scores": {}, "errors": [{"code": "too_short", "detail": "too few tokens"}]});
        let broken = json!({"scores": {}, "errors": [{"code": "invalid_line", "detail": "line 3: not JSON"}]});
        assert!(tally(std::slice::from_ref(&scored)).conclude(true).is_ok());
        assert!(tally(&[scored.clone(), short.clone()]).conclude(false).is_ok());
        let said = tally(&[scored, short.clone()]).conclude(true).unwrap_err().to_string();
        assert_eq!(said, "1 of 2 texts could not be scored; first: line 4: too few tokens");
        let said = tally(&[broken, short]).conclude(false).unwrap_err().to_string();
        assert_eq!(said, "2 of 2 texts could not be scored; first: line 3: not JSON");
    }
}
