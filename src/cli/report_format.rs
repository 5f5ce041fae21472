//! Printing of reports: as a table that fits the terminal, or as JSON.

use anyhow::{Result, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{IsTerminal, Write, stderr, stdout};
use textwrap::{Options, WordSplitter};

/// Width of a table where there is no terminal.
const WIDTH: usize = 80;

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub enum ReportFormat {
    Json,
    Table,
    /// The signed report, an in-toto statement in a DSSE envelope.
    Dsse,
}

impl ReportFormat {
    /// Reads the formats of reports that the command itself does not sign.
    pub fn unsigned() -> impl TypedValueParser<Value = Self> {
        PossibleValuesParser::new(["json", "table"]).map(|name| if name == "json" { Self::Json } else { Self::Table })
    }
}

/// The options of what a command prints.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct ReportArgs {
    /// Format of the report; by default a table on a terminal and JSON elsewhere.
    #[arg(long, value_parser = ReportFormat::unsigned())]
    pub format: Option<ReportFormat>,
    /// Show all columns of tables, also those that the terminal has no room for.
    #[arg(long)]
    pub wide: bool,
}

impl ReportArgs {
    /// Prints a report to standard output. `table` takes the width that is available, which is `None` where all columns are wanted.
    pub fn print<R: Serialize>(self, report: &R, table: impl FnOnce(&R, Option<usize>) -> String) -> Result<()> {
        let mut out = stdout().lock();
        let default = if out.is_terminal() { ReportFormat::Table } else { ReportFormat::Json };
        match self.format.unwrap_or(default) {
            ReportFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(report)?)?,
            ReportFormat::Dsse => bail!("--format dsse: the report is not signed"),
            ReportFormat::Table => write!(out, "{}", table(report, table_width(self.wide)))?,
        }
        Ok(())
    }

    /// The same options, with a table where no format is given.
    pub fn or_table(self) -> Self {
        Self { format: self.format.or(Some(ReportFormat::Table)), ..self }
    }
}

/// The width for tables on standard output: that of the terminal; `None` where all columns are wanted.
pub fn table_width(wide: bool) -> Option<usize> {
    let terminal = || terminal_size::terminal_size_of(stdout()).map(|(width, _)| usize::from(width.0));
    (!wide).then(|| terminal().unwrap_or(WIDTH))
}

/// A text in indented lines of at most `width` characters.
pub fn wrapped(text: &str, width: Option<usize>) -> String {
    fill(text, "  ", width)
}

/// The same, whose first line is not indented.
pub fn hanging(text: &str, width: Option<usize>) -> String {
    fill(text, "", width)
}

fn fill(text: &str, indent: &str, width: Option<usize>) -> String {
    let options = Options::new(width.unwrap_or(WIDTH)).initial_indent(indent).subsequent_indent("  ");
    // Numbers and labels have hyphens, and are not split there.
    let options = options.break_words(false).word_splitter(WordSplitter::NoHyphenation);
    format!("{}\n", textwrap::fill(text, options))
}

/// A message for standard error: in lines that fit the terminal, or in one line where there is none.
pub fn message(text: &str) -> String {
    match terminal_size::terminal_size_of(stderr()) {
        Some((width, _)) => hanging(text, Some(width.0.into())).trim_end().to_owned(),
        None => text.to_owned(),
    }
}

/// A text of somebody else's without the control characters that a terminal takes for orders.
pub fn readable(text: &str) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.chars().map(escaped).collect()
}

/// A part of a report that is JSON, as the type that it was written from; `None` where it is not there.
pub fn part<'v, T: Deserialize<'v>>(value: &'v Value) -> Option<T> {
    T::deserialize(value).ok()
}

/// A number as tables show it.
pub fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.3}"))
}

/// A difference. Adding 0 turns what rounds to a negative zero into a plain one.
pub fn signed(value: f64) -> String {
    format!("{:+.3}", (value * 1e3).round() / 1e3 + 0.0)
}

/// A share in percent, with as many digits as it takes.
pub fn percent(share: f64) -> String {
    format!("{}%", (share * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words() {
        let text = "warning: min_k(k=0.2) and non-members";
        assert_eq!(hanging(text, Some(20)), "warning:\n  min_k(k=0.2) and\n  non-members\n");
        assert_eq!(wrapped(text, Some(24)), "  warning: min_k(k=0.2)\n  and non-members\n");
        assert_eq!(hanging(text, None), format!("{text}\n"));
    }
}
