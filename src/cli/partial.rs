//! Results on their way to a file, kept so that an interrupted run can be resumed.
//!
//! They are lines of NDJSON in `FILE.partial`, whatever `FILE` will be. The first line says what makes them: only a run of the same
//! input, model and methods may go on with them. Invariants:
//!
//! - what is not a whole line is scored again;
//! - no file of results is lost: one that is left by another run is never overwritten;
//! - one process writes at a time.

use super::export;
use crate::table::ResultRow;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The file of results of a run that is under way.
pub struct PartialResults {
    target: PathBuf,
    path: PathBuf,
    out: BufWriter<File>,
    /// Number of results that an interrupted run has left.
    rows: usize,
    /// True if there is nothing to keep: no result was there or was added.
    is_empty: bool,
}

impl PartialResults {
    /// Begins a new file for the results of `run`, or goes on with the one that an interrupted run has left.
    ///
    /// # Errors
    /// Where the file cannot be written, is there without `resume`, or is of another run.
    pub fn open(target: &Path, run: &ResultRow, resume: bool) -> Result<Self> {
        let unwritable = || format!("cannot write {}", target.display());
        ensure!(!target.is_dir() && target.file_name().is_some(), "{}: it is a directory", unwritable());
        let path = partial_path(target);
        let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(_) if resume && target.exists() => {
                std::fs::remove_file(&path)?;
                bail!("{} is there already, and nothing is left to resume; delete it to begin anew", target.display())
            }
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists && resume => {
                OpenOptions::new().read(true).write(true).open(&path).with_context(unwritable)?
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("{} holds the results of an interrupted run; go on with --resume, or delete it", path.display())
            }
            Err(error) => return Err(error).with_context(unwritable),
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!("{} is being written by another process", path.display()),
            Err(TryLockError::Error(error)) => return Err(error).with_context(unwritable),
        }
        let mut results = Self { target: target.to_owned(), path, out: BufWriter::new(file), rows: 0, is_empty: false };
        results.resume(run).with_context(|| format!("cannot resume {}", results.path.display()))?;
        Ok(results)
    }

    /// Counts the results that are there, and cuts off what is not a whole line.
    fn resume(&mut self, run: &ResultRow) -> Result<()> {
        let mut reader = BufReader::new(self.out.get_ref());
        let mut line = Vec::new();
        let mut end = reader.read_until(b'\n', &mut line)? as u64;
        if line.last() != Some(&b'\n') {
            // Not even the first line was written.
            self.is_empty = true;
            self.out.get_ref().set_len(0)?;
            self.out.rewind()?;
            return self.write_line(run);
        }
        let before: ResultRow = serde_json::from_slice(&line).context("its first line is not JSON")?;
        let differing = run.iter().filter(|(name, value)| before.get(*name) != Some(value)).map(|(name, value)| {
            let before = before.get(name).unwrap_or(&Value::Null);
            format!("{name} was {before} and is {value} now")
        });
        let differing: Vec<String> = differing.collect();
        ensure!(differing.is_empty(), "it is of another run: {}", differing.join("; "));
        loop {
            line.clear();
            let read = reader.read_until(b'\n', &mut line)? as u64;
            if line.last() != Some(&b'\n') {
                break;
            }
            (end, self.rows) = (end + read, self.rows + 1);
        }
        self.is_empty = self.rows == 0;
        self.out.get_ref().set_len(end)?;
        self.out.seek(SeekFrom::Start(end))?;
        Ok(())
    }

    /// The file that keeps the results until all are there.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a result.
    pub fn write(&mut self, row: &ResultRow) -> Result<()> {
        self.is_empty = false;
        self.write_line(row)
    }

    fn write_line(&mut self, row: &ResultRow) -> Result<()> {
        serde_json::to_writer(&mut self.out, row)?;
        Ok(self.out.write_all(b"\n")?)
    }

    /// Makes sure that what was added outlives this process; it need not survive a power failure.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.out.flush()?)
    }

    /// Writes all results to the file that they are for.
    ///
    /// # Errors
    /// Those of the file system; then the results are still where they were.
    pub fn finish(mut self, labels: &[String]) -> Result<()> {
        self.flush()?;
        self.is_empty = false;
        export::write(&self.target, labels, || rows(&self.path))?;
        std::fs::remove_file(&self.path).with_context(|| format!("cannot delete {}", self.path.display()))
    }

    /// The results that an interrupted run has left.
    pub fn left(&self) -> Result<impl Iterator<Item = Result<ResultRow>> + use<>> {
        Ok(rows(&self.path)?.take(self.rows))
    }
}

impl Drop for PartialResults {
    fn drop(&mut self) {
        if self.is_empty {
            // The remains of a run that failed at once would only be in the way of the next.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn partial_path(target: &Path) -> PathBuf {
    let mut name = target.file_name().map(OsString::from).unwrap_or_default();
    name.push(".partial");
    target.with_file_name(name)
}

/// The results of a file, after its first line.
fn rows(path: &Path) -> Result<impl Iterator<Item = Result<ResultRow>> + use<>> {
    let unreadable = format!("cannot read {}", path.display());
    let reader = BufReader::with_capacity(1 << 20, File::open(path).with_context(|| unreadable.clone())?);
    Ok(reader.lines().skip(1).map(move |line| {
        let line = line.with_context(|| unreadable.clone())?;
        serde_json::from_str(&line).with_context(|| unreadable.clone())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(value: Value) -> ResultRow {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_interrupted_run_goes_on_after_its_last_whole_line() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out.ndjson");
        let run = row(json!({"model": "a"}));
        let mut first = PartialResults::open(&target, &run, false).unwrap();
        first.write(&row(json!({"index": 0}))).unwrap();
        first.flush().unwrap();
        drop(first);
        let mut torn = OpenOptions::new().append(true).open(partial_path(&target)).unwrap();
        torn.write_all(b"{\"index\": 1, \"sco").unwrap();
        let refused = |run: &ResultRow, resume| PartialResults::open(&target, run, resume).err().unwrap();
        assert!(refused(&run, false).to_string().contains("--resume"));
        let other = format!("{:#}", refused(&row(json!({"model": "b"})), true));
        assert!(partial_path(&target).exists(), "what another run has left stays");
        assert!(other.ends_with("it is of another run: model was \"a\" and is \"b\" now"), "{other}");

        let mut second = PartialResults::open(&target, &run, true).unwrap();
        assert_eq!(second.left().unwrap().count(), 1);
        assert!(refused(&run, true).to_string().contains("another process"));
        second.write(&row(json!({"index": 1}))).unwrap();
        second.finish(&[]).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "{\"index\":0}\n{\"index\":1}\n");
        assert!(!partial_path(&target).exists());
        assert!(refused(&run, true).to_string().contains("nothing is left to resume"));
        assert!(!partial_path(&target).exists());
    }

    #[test]
    fn a_run_that_ended_in_its_first_line_begins_anew() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("out.ndjson");
        std::fs::write(partial_path(&target), "{\"mod").unwrap();
        let results = PartialResults::open(&target, &row(json!({"model": "a"})), true).unwrap();
        assert_eq!(results.left().unwrap().count(), 0);
        drop(results);
        assert!(!partial_path(&target).exists(), "nothing is left of a run without results");
        let results = PartialResults::open(&target, &row(json!({"model": "a"})), false).unwrap();
        results.finish(&[]).unwrap();
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "");
    }
}
