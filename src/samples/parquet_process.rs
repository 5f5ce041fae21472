//! Parquet in a process of its own, for files of clients. The library that reads it allocates what a file claims, and a few bytes can
//! claim more than there is: the process is bounded in memory and time, and what ends it ends it alone.
//!
//! The process writes a line of JSON for each [`Line`].

use super::columns::{ColumnNames, ParquetProcess};
use super::input::{InputFile, RecordMemory};
use super::json::check_size;
use super::parquet_file::{self, ParquetRows};
use super::record::{Fields, FileRecords, ReadError, Record, RecordPlace};
use crate::slots::Slot;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tempfile::NamedTempFile;

/// Name of the command that prints the lines.
const COMMAND: &str = "parquet-rows";

/// Maximum memory that reading takes, in bytes of the address space.
const MAX_MEMORY: u64 = 512 << 20;
/// Maximum time of a processor that it takes, in seconds.
const MAX_SECONDS: u64 = 300;
/// Maximum time that a file waits for one of them.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A line that the process writes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// First: the names of the columns, and how many rows there are.
    Table {
        columns: Vec<String>,
        rows: u64,
    },
    Row(Fields),
    /// In place of all others: why the file is no table.
    Unfit(String),
    /// Last: why the next row cannot be read.
    Fault(String),
    /// Last: there are no more rows.
    End,
}

/// Bounds this process and prints the rows of a file.
///
/// # Errors
/// Where the bounds cannot be set, or standard output is closed.
pub fn print_rows(file: &Path) -> io::Result<()> {
    bound_this_process()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut write = |line: &Line| {
        serde_json::to_writer(&mut out, line)?;
        out.write_all(b"\n")
    };
    match ParquetRows::open(File::open(file)?) {
        Ok(rows) => {
            write(&Line::Table { columns: rows.columns.clone(), rows: rows.claimed })?;
            for row in rows {
                let is_last = row.is_err();
                write(&row.map_or_else(|fault| Line::Fault(shortened(&fault)), Line::Row))?;
                if is_last {
                    return out.flush();
                }
            }
            write(&Line::End)?;
        }
        Err(fault) => write(&Line::Unfit(shortened(&fault)))?,
    }
    out.flush()
}

/// The first characters of a fault, which may quote a value of megabytes.
fn shortened(fault: &str) -> String {
    const MOST: usize = 500;
    fault.chars().take(MOST).collect()
}

/// Bounds memory and time, and makes this process the first that the system ends where memory is short.
#[cfg(unix)]
fn bound_this_process() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, setrlimit};
    let memory = MAX_MEMORY + address_space();
    for (resource, limit) in [(Resource::As, memory), (Resource::Cpu, MAX_SECONDS), (Resource::Core, 0)] {
        match setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) }) {
            // macOS does not bound the address space.
            Err(rustix::io::Errno::INVAL) if resource == Resource::As && cfg!(target_vendor = "apple") => {}
            set => set?,
        }
    }
    if cfg!(target_os = "linux") {
        std::fs::write("/proc/self/oom_score_adj", "1000")?;
    }
    Ok(())
}

/// The size of this process's address space in bytes: the program, and what its allocator has reserved; 0 where it is not known.
#[cfg(unix)]
fn address_space() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let size =
        status.lines().find_map(|line| line.strip_prefix("VmSize:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    size.unwrap_or(0) << 10
}

#[cfg(not(unix))]
fn bound_this_process() -> io::Result<()> {
    Err(io::Error::other("processes are not bounded on this system"))
}

/// The records of a file, each of at most `limit` bytes as JSON, which another process reads. Waits while others are read.
///
/// # Errors
/// Where the file is no table or has no texts, there is no such process, or others are read for too long.
pub fn read(
    mut input: InputFile,
    limit: u64,
    columns: &ColumnNames,
    ParquetProcess { program, slots, client }: &ParquetProcess,
) -> Result<FileRecords, ReadError> {
    let mut copy = None;
    let path: PathBuf = match input.plain_file() {
        Some(path) => path.to_owned(),
        None => {
            let mut file = NamedTempFile::new()?;
            io::copy(&mut input, &mut file)?;
            copy.insert(file).path().to_owned()
        }
    };
    let slot = slots.take_within(client.as_ref(), MAX_WAIT).map_err(ReadError::Busy)?;
    let mut command = Command::new(program);
    command.arg(COMMAND).arg(&path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("the process that reads Parquet cannot be started ({}): {error}", program.display()),
        )
    });
    let mut process = RowProcess::new(child?, limit, slot, input.memory())?;
    let (names, count) = match process.line()? {
        Line::Table { columns, rows } => (columns, rows.max(1)),
        Line::Unfit(fault) => return Err(ReadError::Unfit(fault)),
        line => return Err(ReadError::Io(io::Error::other(format!("{line:?} in place of the columns")))),
    };
    parquet_file::check_columns(columns, &names)?;
    let size = input.size().unwrap_or(0);
    let (mut number, mut is_over) = (0, false);
    Ok(Box::new(std::iter::from_fn(move || {
        // The file is there as long as its rows are read.
        let _ = (&input, &copy);
        if is_over {
            return None;
        }
        number += 1;
        let (place, line) = (RecordPlace::Row(number), process.line());
        is_over = !matches!(line, Ok(Line::Row(_)));
        let broken = |fault: String| Some(Err(ReadError::Broken { place, fault }));
        match line {
            Ok(Line::Row(fields)) => {
                let position = parquet_file::position(size, number, count);
                Some(Ok(Record { place, position, fields: Ok(fields) }))
            }
            Ok(Line::End) => None,
            Ok(Line::Fault(fault)) => broken(fault),
            Ok(line) => broken(format!("{line:?} in place of a row")),
            Err(ReadError::Io(error)) => broken(error.to_string()),
            Err(error) => Some(Err(error)),
        }
    })))
}

/// A process that reads rows; it ends when this is dropped.
struct RowProcess {
    child: Child,
    lines: BufReader<ChildStdout>,
    limit: u64,
    line: Vec<u8>,
    memory: RecordMemory,
    _slot: Slot<Arc<str>>,
}

impl RowProcess {
    fn new(mut child: Child, limit: u64, slot: Slot<Arc<str>>, memory: RecordMemory) -> io::Result<Self> {
        let out = child.stdout.take().ok_or_else(|| io::Error::other("the process has no output"))?;
        Ok(Self { child, lines: BufReader::new(out), limit, line: Vec::new(), memory, _slot: slot })
    }

    fn line(&mut self) -> Result<Line, ReadError> {
        // `{"row":` and `}`.
        const FRAME: u64 = 8;
        let most = self.limit.saturating_add(FRAME);
        self.line.clear();
        Read::take(&mut self.lines, most.saturating_add(1)).read_until(b'\n', &mut self.line)?;
        match self.line.pop() {
            Some(b'\n') => {
                self.memory.hold(self.line.len())?;
                check_size(&self.line).map_err(io::Error::other)?;
                Ok(serde_json::from_slice(&self.line).map_err(io::Error::from)?)
            }
            Some(_) if self.line.len() as u64 >= most => {
                let fault = format!("the row is longer than {} bytes as JSON (server.body_limit)", self.limit);
                Err(io::Error::other(fault).into())
            }
            _ => Err(io::Error::other(end(self.child.wait()?)).into()),
        }
    }
}

impl Drop for RowProcess {
    fn drop(&mut self) {
        // Both fail only where it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the reason for the end of a process before the last row.
fn end(status: ExitStatus) -> String {
    if status.code().is_some_and(|code| code != 0) {
        return format!("the process that reads Parquet failed ({status})");
    }
    format!(
        "reading takes more than {} MiB of memory or {MAX_SECONDS} s; write the file with smaller pages and row groups",
        MAX_MEMORY >> 20
    )
}
