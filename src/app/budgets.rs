//! Token budgets that were measured, in one small file each, so that the next start measures nothing.
//!
//! Invariants:
//!
//! - a file says what its budget was measured under, and counts for nothing else: model, device, processor, threads, and the
//!   kernels;
//! - it is there as a whole or not at all, so any number of processes may share the directory; the last to write wins;
//! - it can only save a trial: whatever goes wrong is logged, and a budget is measured again.

#[cfg(test)]
mod tests;

use crate::engine::KnownBudgets;
use crate::new_file::NewFile;
use anyhow::{Context, Result, ensure};
use lm::models::files::digest;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

/// The program that measured, by the sources of its kernels, which `build.rs` names. Budgets of others are not used.
const PROGRAM: &str = lm::NUMERICS;

/// No file of ours is larger.
const MOST_BYTES: u64 = 64 << 10;

/// The directory of this user's budgets, as the variables say that programs with a cache read; none where they say nothing.
pub fn directory(vars: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let absolute = |name: &str| vars(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(cache.join("pdr-audit").join("batch-budgets"))
}

/// The budgets of one device.
pub struct BudgetFiles {
    /// None where nothing is kept.
    pub directory: Option<PathBuf>,
    /// What the device is called.
    pub device: String,
    pub hardware: String,
    pub threads: usize,
}

/// What a budget was measured under.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Conditions {
    model: String,
    device: String,
    hardware: String,
    threads: usize,
}

/// What stands in a file.
#[derive(Debug, Serialize, Deserialize)]
struct Note {
    program: String,
    #[serde(flatten)]
    conditions: Conditions,
    max_batch_tokens: usize,
}

impl KnownBudgets for BudgetFiles {
    fn find(&self, identity: &str) -> Option<usize> {
        let conditions = self.conditions(identity);
        let path = conditions.path(self.directory.as_deref()?);
        read(&path, &conditions).unwrap_or_else(|error| {
            let (file, reason) = (path.display(), format!("{error:#}"));
            tracing::warn!(%file, reason, "a remembered batch budget is not used; it is measured again");
            None
        })
    }

    fn keep(&self, identity: &str, tokens: usize) {
        let Some(directory) = &self.directory else { return };
        let conditions = self.conditions(identity);
        let path = conditions.path(directory);
        let note = Note { program: PROGRAM.to_owned(), conditions, max_batch_tokens: tokens };
        if let Err(error) = write(&path, &note) {
            let (file, reason) = (path.display(), format!("{error:#}"));
            tracing::info!(%file, reason, "the batch budget is not remembered, and the next start measures it again");
        }
    }
}

impl BudgetFiles {
    fn conditions(&self, identity: &str) -> Conditions {
        let Self { device, hardware, threads, .. } = self;
        let (model, device, hardware) = (identity.to_owned(), device.clone(), hardware.clone());
        Conditions { model, device, hardware, threads: *threads }
    }
}

impl Conditions {
    /// A file of their own.
    fn path(&self, directory: &Path) -> PathBuf {
        let Self { model, device, hardware, threads } = self;
        // No part holds a zero, so no two conditions are written alike.
        let name = digest(format!("{model}\0{device}\0{hardware}\0{threads}").as_bytes());
        directory.join(name.trim_start_matches("sha256:")).with_extension("json")
    }
}

/// The budget in a file; none where there is no file.
fn read(path: &Path, conditions: &Conditions) -> Result<Option<usize>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut json = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut json)?;
    let note: Note = serde_json::from_slice(&json)?;
    if note.program != PROGRAM {
        // As after every upgrade.
        return Ok(None);
    }
    ensure!(note.conditions == *conditions, "it was measured under other conditions than its name says");
    Ok(Some(note.max_batch_tokens))
}

fn write(path: &Path, note: &Note) -> Result<()> {
    let directory = path.parent().context("it has no directory")?;
    std::fs::create_dir_all(directory)?;
    let mut json = serde_json::to_vec_pretty(note)?;
    json.push(b'\n');
    Ok(NewFile::create(path)?.write(&json)?)
}
