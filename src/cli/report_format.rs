//! Printing of reports.

use anyhow::Result;
use clap::ValueEnum;
use serde::Serialize;
use std::io::{IsTerminal, Write, stdout};

/// Format of a report.
#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum ReportFormat {
    Json,
    Table,
}

/// Prints a report to standard output. Without a format, it is a table on a terminal and JSON elsewhere.
pub fn print<R: Serialize>(report: &R, format: Option<ReportFormat>, table: impl FnOnce(&R) -> String) -> Result<()> {
    let mut out = stdout().lock();
    let default = if out.is_terminal() { ReportFormat::Table } else { ReportFormat::Json };
    match format.unwrap_or(default) {
        ReportFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(report)?)?,
        ReportFormat::Table => write!(out, "{}", table(report))?,
    }
    Ok(())
}
