//! `pdr-audit texts`: books, folders and archives in, their passages or a table of what was read out.

use super::export;
use super::scoring_args::variant;
use super::texts_table::{TextsSummary, render};
use crate::table::ResultRow;
use anyhow::{Context, Result, anyhow};
use clap::{Args, ValueEnum};
use documents::{Cut, CutAt, Passage, ReadLimits, open, passages};
use std::cell::RefCell;
use std::io::{BufWriter, IsTerminal, Write, stdout};
use std::path::PathBuf;

#[derive(Args)]
pub struct TextsArgs {
    /// Files, folders and archives (`.zip`) of plain text, Markdown, HTML and EPUB; text may be compressed with gzip or zstd. In a folder
    /// and in an archive, each file is a document, and what is no text is skipped and named.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Maximum number of words of a passage.
    #[arg(long, value_name = "WORDS", default_value_t = Cut::default().words)]
    cut: usize,
    /// Number of words of the end of a passage that the next one begins with; at most half of `--cut`.
    #[arg(long, value_name = "WORDS", default_value_t = Cut::default().overlap)]
    overlap: usize,
    /// Unit that a passage holds whole while it fits; what is longer than a passage is cut at the next finer one.
    #[arg(long, value_name = "UNIT", default_value = "paragraph", value_parser = variant::<CutAt>())]
    at: CutAt,
    /// Print a table of what was read and left out, or the passages, one a line, as `score` reads them; by default the table on a
    /// terminal and passages elsewhere.
    #[arg(long)]
    format: Option<TextsFormat>,
    /// Write the passages to this file, as CSV or Parquet if the name ends so and else as NDJSON; the table is printed, too. The file is
    /// written as a whole or not at all.
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The content of standard output.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TextsFormat {
    Table,
    Ndjson,
}

/// Cuts the documents. A file that was named and cannot be read is an error, and so is a run without passages.
pub fn run(args: &TextsArgs) -> Result<()> {
    let cut = Cut { words: args.cut, overlap: args.overlap, at: args.at };
    cut.check().context("--cut, --overlap")?;
    let summary = RefCell::new(None);
    let rows = || args.rows(cut, &summary);
    let format = args.format();
    let written = match &args.output {
        Some(target) => export::write(target, &[], rows),
        None if format == TextsFormat::Ndjson => print_rows(rows()?),
        None => rows()?.try_for_each(|row| row.map(drop)),
    };
    if let Some(summary) = summary.take() {
        match format {
            TextsFormat::Table => write!(stdout().lock(), "{}", render(&summary))?,
            // Standard output is for passages.
            TextsFormat::Ndjson => eprint!("{}", render(&summary)),
        }
    }
    written
}

fn print_rows(rows: impl Iterator<Item = Result<ResultRow>>) -> Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    for row in rows {
        serde_json::to_writer(&mut out, &row?).map_err(std::io::Error::from)?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}

impl TextsArgs {
    fn format(&self) -> TextsFormat {
        let is_table = self.output.is_some() || stdout().is_terminal();
        self.format.unwrap_or(if is_table { TextsFormat::Table } else { TextsFormat::Ndjson })
    }

    /// The passages from the first one on. The summary is there once all of them were taken.
    fn rows<'a>(
        &self,
        cut: Cut,
        summary: &'a RefCell<Option<TextsSummary>>,
    ) -> Result<impl Iterator<Item = Result<ResultRow>> + use<'a>> {
        let mut passages = passages(open(&self.paths, ReadLimits::default())?, cut)?;
        Ok(std::iter::from_fn(move || match passages.next() {
            Some(passage) => Some(passage.map(row).map_err(anyhow::Error::from)),
            None => {
                let is_first = summary.borrow().is_none();
                let read = TextsSummary::new(&passages);
                let is_empty = read.tally.passages == 0;
                summary.replace(Some(read));
                (is_first && is_empty)
                    .then(|| Err(anyhow!("no passage is left; the table says what was skipped and left out")))
            }
        }))
    }
}

fn row(passage: Passage) -> ResultRow {
    let Passage { document, offset, length, text } = passage;
    ResultRow::from_iter([
        ("document".to_owned(), document.into()),
        ("offset".to_owned(), offset.into()),
        ("length".to_owned(), length.into()),
        ("text".to_owned(), text.into()),
    ])
}
