//! `pdr-audit score`: NDJSON in, NDJSON out, in order and in constant memory.

use super::lines::{self, BadLine, InputReader, Lines, TextLine};
use super::{ScoringArgs, progress};
use crate::audits::Sample;
use crate::scorer::{Bound, IN_FLIGHT, Input, Plan, Scorer, ScorerError, TextError, TextResult};
use anyhow::{Context, Result};
use clap::Args;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;

#[derive(Args)]
pub struct ScoreArgs {
    /// NDJSON with `text` (or `input`) and perhaps `id` and `neighbors` on each line; `-` for standard input.
    file: PathBuf,
    /// List every token with its statistics and its contributions to the scores.
    #[arg(long)]
    tokens: bool,
    #[command(flatten)]
    scoring: ScoringArgs,
}

/// What the reading thread hands over: a line or its fault, and how many bytes were read so far.
type ReadLine = (Result<TextLine, BadLine>, u64);

/// Scores a file.
pub async fn run(args: ScoreArgs, config: Option<&Path>) -> Result<()> {
    let source = lines::open(&args.file).with_context(|| format!("cannot read {}", args.file.display()))?;
    let (settings, scorer, plan) = args.scoring.start(config, false, false).await?;
    let plan = Plan { tokens: args.tokens, ..plan };
    let scored = score(&args.file, source, settings.server.body_limit.as_u64(), &scorer, &plan).await;
    super::finish(&scorer).await;
    scored
}

/// Scores the lines of `source`, the opened file and its size; those longer than `limit` bytes fail.
async fn score(
    file: &Path,
    source: (InputReader, Option<u64>),
    limit: u64,
    scorer: &Scorer,
    plan: &Plan,
) -> Result<()> {
    let (reader, size) = source;
    let bound = scorer.bind(plan).await.map_err(super::explained)?;
    let (sender, mut receiver) = mpsc::channel(IN_FLIGHT);
    let reading = tokio::task::spawn_blocking(move || read(reader, limit, &sender));
    let items = stream::poll_fn(move |context| receiver.poll_recv(context)).enumerate();
    let mut results = items.map(|(index, item)| one(scorer, &bound, index, item)).buffered(IN_FLIGHT);

    let bar = progress::bar(size);
    let mut out = BufWriter::new(stdout().lock());
    let mut texts = 0u64;
    loop {
        let next = match results.try_next().now_or_never() {
            Some(next) => next?,
            // Whoever reads our output may wait for what is ready before it sends more.
            None => {
                out.flush()?;
                results.try_next().await?
            }
        };
        let Some((result, read)) = next else { break };
        serde_json::to_writer(&mut out, &result).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
        texts += 1;
        bar.set_message(format!("{texts} texts"));
        if size.is_some() {
            bar.set_position(read);
        }
    }
    out.flush()?;
    drop(bar);
    reading.await?.with_context(|| format!("cannot read {}", file.display()))
}

fn read(reader: InputReader, limit: u64, sender: &mpsc::Sender<ReadLine>) -> std::io::Result<()> {
    let (mut lines, mut bytes) = (Lines::new(reader, limit), 0);
    while let Some(line) = lines.next()? {
        bytes += line.as_ref().map_or(0, |l| l.len() as u64);
        let line = line.map_err(BadLine::from).and_then(|l| lines::parse(&l, &lines::TEXT));
        let line = line.map_err(|bad| BadLine { fault: format!("line {}: {}", lines.number(), bad.fault), ..bad });
        if sender.blocking_send((line, bytes)).is_err() {
            // The other side has stopped, and says why.
            return Ok(());
        }
    }
    Ok(())
}

/// The fields that came along, then those of the result.
async fn one(
    scorer: &Scorer,
    bound: &Arc<Bound>,
    index: usize,
    (line, read): ReadLine,
) -> Result<(Map<String, Value>, u64), ScorerError> {
    let (results, mut all) = match line {
        // The id is among the other fields, as it was given.
        Ok(TextLine { sample: Sample { text, neighbors, .. }, others }) => {
            (scorer.score_behind(bound, Input { id: None, text, neighbors }).await?.results, others)
        }
        Err(BadLine { fault, others }) => (vec![TextResult::failed(TextError::whole("invalid_line", fault))], others),
    };
    for result in results {
        let value = serde_json::to_value(&result).map_err(|e| ScorerError::Internal(e.to_string()))?;
        all.extend(object(value));
    }
    // A text scored alone is always the first of its request.
    all.insert("index".into(), index.into());
    Ok((all, read))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}
