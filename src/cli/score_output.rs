//! Where the results of `score` go: to a file, or as NDJSON or a table to standard output.

use super::export::{self, result_file};
use super::input::InputArgs;
use super::partial::PartialResults;
use super::report_format::{number, table_width};
use super::score_tally::ScoreTally;
use super::source::SampleSource;
use super::text_table::{TableLayout, TextColumn};
use crate::config::Settings;
use crate::samples::{FileRecords, RecordPlace};
use crate::scorer::{Bound, Plan};
use crate::table::{ResultRow, text};
use anyhow::{Context, Result, anyhow, ensure};
use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use std::io::{BufWriter, IsTerminal, StdoutLock, Write, stdout};
use std::path::{Path, PathBuf};

/// Width of the name of a text, which is the same for all since rows are written as they come.
const NAME: usize = 12;

/// Width of a score, as in `-12.345`.
const SCORE: usize = 7;

/// The options of where results go.
#[derive(Args)]
#[command(next_help_heading = "Output")]
pub struct ScoreOutputArgs {
    /// Write the results to this file: as CSV or Parquet if the name ends in `.csv` or `.parquet`, and as NDJSON if it ends in
    /// `.ndjson` or `.jsonl` or has no extension. The file is written as a whole or not at all.
    #[arg(long, value_name = "FILE", value_parser = result_file())]
    output: Option<PathBuf>,
    /// Format of the results on standard output; by default a table on a terminal and NDJSON elsewhere.
    #[arg(long, value_enum, conflicts_with = "output")]
    format: Option<ScoreFormat>,
    /// Show all columns of the table, also those that the terminal has no room for.
    #[arg(long)]
    wide: bool,
    /// Go on with what an interrupted run with the same `--output` has left.
    #[arg(long, requires = "output")]
    pub resume: bool,
}

/// Format of results on standard output.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum ScoreFormat {
    Ndjson,
    Table,
}

/// Where results go.
pub enum Results {
    Ndjson(BufWriter<StdoutLock<'static>>),
    Table(BufWriter<StdoutLock<'static>>, ScoreLines),
    File(PartialResults),
}

impl Results {
    /// Begins the results of these arguments.
    ///
    /// # Errors
    /// Where the file cannot be written, or tokens are to be listed in a table.
    pub fn open(
        args: &ScoreOutputArgs,
        input: &InputArgs,
        source: &SampleSource,
        settings: &Settings,
        bound: &Bound,
        plan: &Plan,
    ) -> Result<Self> {
        let is_table = match args.format {
            Some(format) => format == ScoreFormat::Table,
            None => args.output.is_none() && stdout().is_terminal() && !plan.tokens,
        };
        let fits = !plan.tokens || !(is_table || export::is_table(args.output.as_deref())?);
        ensure!(fits, "--tokens lists of tokens fit no table; write NDJSON");
        let Some(output) = &args.output else {
            let out = BufWriter::new(stdout().lock());
            let labels = plan.methods.iter().map(|method| method.label.to_string());
            return Ok(match is_table {
                true => Self::Table(out, ScoreLines::new(labels.collect(), table_width(args.wide))),
                false => Self::Ndjson(out),
            });
        };
        let run = json!({
            "program": concat!("pdr-audit ", env!("CARGO_PKG_VERSION")),
            "file": input.file.to_string_lossy(),
            "sha256": source.size().map(|_| source.digest()).transpose().with_context(|| input.unreadable())?,
            "input": input.reader.describe(),
            "limits": [settings.server.body_limit.as_u64(), settings.limits.text.as_u64()],
            "models": bound.infos(),
            "methods": plan.methods.as_ref(),
            "overflow": plan.overflow,
            "tokens": plan.tokens,
        });
        let Value::Object(run) = run else { return Err(anyhow!("a run is described by an object")) };
        Ok(Self::File(PartialResults::open(output, &run, args.resume)?))
    }

    /// Counts what an interrupted run has left, and passes the records that it is of.
    pub fn resume(&self, tally: &mut ScoreTally, records: &mut FileRecords, input: &InputArgs) -> Result<()> {
        let Self::File(file) = self else { return Ok(()) };
        for (row, record) in file.left()?.zip(records) {
            tally.add(record.with_context(|| input.unreadable())?.place, &row?);
        }
        Ok(())
    }

    /// Adds the result of the text at this place.
    pub fn write(&mut self, row: &ResultRow, place: RecordPlace) -> Result<()> {
        match self {
            Self::Ndjson(out) => {
                serde_json::to_writer(&mut *out, row).map_err(std::io::Error::from)?;
                Ok(out.write_all(b"\n")?)
            }
            Self::Table(out, lines) => Ok(out.write_all(lines.next(row, place).as_bytes())?),
            Self::File(file) => file.write(row),
        }
    }

    pub fn flush(&mut self) -> Result<()> {
        match self {
            Self::Ndjson(out) | Self::Table(out, _) => Ok(out.flush()?),
            Self::File(file) => file.flush(),
        }
    }

    /// The file that keeps the results until all are there; `None` where they go to standard output.
    pub fn partial(&self) -> Option<&Path> {
        if let Self::File(file) = self { Some(file.path()) } else { None }
    }

    /// Completes the results of methods with these labels.
    pub fn finish(self, labels: &[String]) -> Result<()> {
        match self {
            Self::Ndjson(_) => Ok(()),
            Self::Table(mut out, lines) => {
                out.write_all(lines.layout.left_out().as_bytes())?;
                Ok(out.flush()?)
            }
            Self::File(file) => file.finish(labels),
        }
    }
}

/// The lines of a table of results, one after another.
pub struct ScoreLines {
    labels: Vec<String>,
    layout: TableLayout,
    has_header: bool,
}

impl ScoreLines {
    fn new(labels: Vec<String>, width: Option<usize>) -> Self {
        let first = [TextColumn::words("text"), TextColumn::numbers("tokens")];
        let columns: Vec<TextColumn> = first.into_iter().chain(labels.iter().map(TextColumn::numbers)).collect();
        let of_labels = labels.iter().map(|label| label.chars().count().max(SCORE));
        let natural: Vec<usize> = [NAME, "tokens".len()].into_iter().chain(of_labels).collect();
        Self { layout: TableLayout::new(&columns, &natural, width), labels, has_header: false }
    }

    /// The line of a result, after the header if it is the first. A text has its id or else its place for a name.
    fn next(&mut self, row: &ResultRow, place: RecordPlace) -> String {
        let name = row.get("id").and_then(text).map_or_else(|| place.to_string(), |id| id.into_owned());
        let tokens = row.get("scored_tokens").and_then(text).unwrap_or_default().into_owned();
        let scores =
            self.labels.iter().map(|label| number(row.get("scores").and_then(|scores| scores[label].as_f64())));
        let line = self.layout.line(&[name, tokens].into_iter().chain(scores).collect::<Vec<_>>());
        match std::mem::replace(&mut self.has_header, true) {
            true => line,
            false => format!("{}{line}", self.layout.header()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_name_of_the_text_its_tokens_and_its_scores() {
        let labels =
            vec!["loss".to_owned(), "min_k(k=0.2)".to_owned(), "min_k_plus_plus(k=0.2)+linear(alpha=1)".to_owned()];
        let row = |row: Value| row.as_object().cloned().unwrap();
        let mut lines = ScoreLines::new(labels.clone(), Some(60));
        let scored =
            row(json!({ "id": "a", "scored_tokens": 12, "scores": { "loss": -7.13436, "min_k(k=0.2)": -9.5 } }));
        assert_eq!(
            lines.next(&scored, RecordPlace::Line(1)),
            "text          tokens     loss  min_k(k=0.2)\na                 12   -7.134        -9.500\n"
        );
        let failed = row(json!({ "scored_tokens": 0, "scores": {} }));
        assert_eq!(lines.next(&failed, RecordPlace::Line(23)), "line 23            0        -             -\n");
        let left_out = "without min_k_plus_plus(k=0.2)+linear(alpha=1) (--wide shows\n  all)\n";
        assert_eq!(lines.layout.left_out(), left_out);
        assert_eq!(ScoreLines::new(labels, None).layout.left_out(), "");
    }
}
