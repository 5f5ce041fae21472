//! `record verify`: checks the chain of an access record.

use crate::access::{BrokenChain, ChainCheck};
use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use std::fs::File;
use std::io::{BufRead, BufReader, Write, stdout};
use std::path::{Path, PathBuf};

/// Maximum length of a line in bytes; the service writes shorter ones.
const LONGEST_LINE: u64 = 2 << 20;

#[derive(Args)]
pub struct RecordArgs {
    #[command(subcommand)]
    command: RecordCommand,
}

#[derive(Subcommand)]
enum RecordCommand {
    /// Check that no line of an access record was changed, removed or added.
    Verify {
        /// The files of the record, the oldest first.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

pub fn run(args: RecordArgs) -> Result<()> {
    let RecordCommand::Verify { files } = args.command;
    let mut check = ChainCheck::default();
    for file in &files {
        add_file(&mut check, file)?;
    }
    let ChainCheck { lines, unchained, cut, first, last, ends_cut } = check;
    let Some(last) = last else { bail!("the record has no lines") };
    let mut out = stdout().lock();
    writeln!(out, "{lines} lines hold")?;
    match first {
        Some(first) => writeln!(out, "before the first line: {first}")?,
        None => writeln!(out, "{unchained} lines at the beginning are of a version that did not chain them")?,
    }
    if cut > 0 {
        let end = if ends_cut { ", the last line among them" } else { "" };
        writeln!(out, "{cut} lines were cut by a crash{end}")?;
    }
    writeln!(out, "last line: {last}")?;
    Ok(())
}

fn add_file(check: &mut ChainCheck, path: &Path) -> Result<()> {
    let place = path.display();
    let mut file = BufReader::new(File::open(path).with_context(|| format!("cannot open {place}"))?);
    for number in 1.. {
        let mut line = Vec::new();
        let mut bounded = std::io::Read::take(&mut file, LONGEST_LINE);
        if bounded.read_until(b'\n', &mut line).with_context(|| format!("cannot read {place}"))? == 0 {
            break;
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() as u64 == LONGEST_LINE {
            bail!("{place}, line {number}: it is longer than any line of a record");
        }
        check.add(&line).map_err(|fault: BrokenChain| anyhow::anyhow!("{place}, line {number}: {fault}"))?;
    }
    Ok(())
}
