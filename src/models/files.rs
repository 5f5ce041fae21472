//! The files of a model, in a directory or compiled into the program, and their digests.

use super::error::ModelError;
use crate::texts::hexadecimal;
use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// The location of a model's files.
#[derive(Clone, Debug)]
pub enum ModelFiles {
    /// A directory as saved by transformers.
    Directory(PathBuf),
    /// Names and contents of files that are part of the program.
    Embedded(&'static [(&'static str, &'static [u8])]),
    /// Names and contents of files in memory.
    Memory(Arc<[(String, Vec<u8>)]>),
}

/// The state of files as [`ModelFiles::stamp`] saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

/// The content of one file; a file on disk is memory-mapped, not read.
pub enum FileBytes {
    Mapped(Mmap),
    Embedded(&'static [u8]),
    /// That of the file of this index.
    Memory(Arc<[(String, Vec<u8>)]>, usize),
}

impl FileBytes {
    /// Releases the pages of a part that was read: the pages of a mapped file count as this process's memory. They are
    /// loaded again if they are read again.
    pub fn release(&self, part: Range<usize>) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // SAFETY: the map is only read, so its pages have the file's content whenever they are loaded again.
            let released = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len()) };
            if let Err(why) = released {
                tracing::debug!(%why, "pages of weights stay in memory until their file is closed");
            }
        }
    }
}

impl Deref for FileBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Embedded(bytes) => bytes,
            Self::Memory(files, index) => &files[*index].1,
        }
    }
}

impl ModelFiles {
    /// The content of a file that must exist.
    ///
    /// # Errors
    /// [`ModelError::File`] with the path and the system's error.
    pub fn open(&self, name: &str) -> Result<FileBytes, ModelError> {
        self.find(name)?.ok_or_else(|| self.error(name, format!("no such file{}", self.listing())))
    }

    /// What is in the directory instead, in words.
    fn listing(&self) -> String {
        const MOST: usize = 10;
        let Self::Directory(directory) = self else { return String::new() };
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_unstable();
        let more = names.len().saturating_sub(MOST);
        names.truncate(MOST);
        let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("; is this the right directory? found: {names}{more}")
    }

    /// The content of a file, or `None` if it does not exist.
    ///
    /// # Errors
    /// [`ModelError::File`] if the file exists and cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<FileBytes>, ModelError> {
        match self {
            Self::Embedded(files) => {
                Ok(files.iter().find(|(n, _)| *n == name).map(|(_, bytes)| FileBytes::Embedded(bytes)))
            }
            Self::Memory(files) => {
                let index = files.iter().position(|(n, _)| n == name);
                Ok(index.map(|index| FileBytes::Memory(Arc::clone(files), index)))
            }
            Self::Directory(directory) => match open_regular(&directory.join(name)) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(self.error(name, e)),
                // SAFETY: the map is only read. If another program truncates the file in the meantime, the process may
                // be terminated, as with every mapped checkpoint; publishers replace files instead of rewriting them.
                Ok(file) => {
                    unsafe { Mmap::map(&file) }.map(|m| Some(FileBytes::Mapped(m))).map_err(|e| self.error(name, e))
                }
            },
        }
    }

    /// Sizes and modification times of all files, to detect later changes.
    ///
    /// # Errors
    /// [`ModelError::File`] if the directory cannot be read.
    pub fn stamp(&self) -> Result<Stamp, ModelError> {
        let Self::Directory(directory) = self else { return Ok(Stamp(BTreeMap::new())) };
        let error = |e: std::io::Error| self.error("", e);
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(directory).map_err(error)? {
            let path = entry.map_err(error)?.path();
            // Follows links, such as those in the Hub's cache.
            if let Ok(data) = std::fs::metadata(&path) {
                files.insert(path, (data.len(), data.modified().ok()));
            }
        }
        Ok(Stamp(files))
    }

    /// An error about one of the files.
    pub fn error(&self, name: &str, reason: impl ToString) -> ModelError {
        let path = match self {
            Self::Directory(directory) => directory.join(name).display().to_string(),
            Self::Embedded(_) => format!("(embedded) {name}"),
            Self::Memory(_) => name.to_owned(),
        };
        ModelError::File { path, reason: reason.to_string() }
    }
}

/// Opens a file that is one. A pipe would be waited for, perhaps for ever, and what a device gives has no end.
fn open_regular(path: &Path) -> std::io::Result<File> {
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_file() {
        return File::open(path);
    }
    let what = if kind.is_dir() { "it is a directory" } else { "it is no regular file" };
    Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what))
}

/// SHA-256 of a file as `sha256:<hex>`.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", sha256_hex(bytes))
}

fn sha256_hex(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// SHA-256 over the lines `<hex>  <name>` of the files in the order of their names: what `sha256sum FILES | sha256sum`
/// prints for the files in that order.
pub fn joint_digest(files: &mut [(&str, &[u8])]) -> String {
    files.sort_unstable_by_key(|(name, _)| *name);
    let lines: Vec<String> = files.par_iter().map(|(name, bytes)| format!("{}  {name}\n", sha256_hex(bytes))).collect();
    digest(lines.concat().as_bytes())
}
