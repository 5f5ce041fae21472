//! The files of a model, as a directory on disk or compiled into the program; and their digests.

use super::ModelError;
use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::{Deref, Range};
use std::path::PathBuf;
use std::time::SystemTime;

/// Where a model's files are.
#[derive(Clone, Debug)]
pub enum ModelFiles {
    /// A directory as transformers saves it.
    Directory(PathBuf),
    /// Names and contents of files that are part of the program.
    Embedded(&'static [(&'static str, &'static [u8])]),
}

/// What [`ModelFiles::stamp`] saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

/// The content of one file; a file on disk is mapped, not read.
pub enum FileBytes {
    Mapped(Mmap),
    Embedded(&'static [u8]),
}

impl FileBytes {
    /// Lets go of the pages of a part that was read: those of a mapped file count as this process's memory. They come
    /// back when they are read again.
    pub fn let_go(&self, part: Range<usize>) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // SAFETY: the map is only read, so its pages hold what the file holds, whenever they come back.
            let done = unsafe { map.unchecked_advise_range(UncheckedAdvice::DontNeed, part.start, part.len()) };
            if let Err(why) = done {
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
        }
    }
}

impl ModelFiles {
    /// The content of a file that must be there.
    ///
    /// # Errors
    /// [`ModelError::File`] with the path and what the system said.
    pub fn open(&self, name: &str) -> Result<FileBytes, ModelError> {
        self.find(name)?.ok_or_else(|| self.fault(name, "no such file"))
    }

    /// The content of a file, or `None` where there is no such file.
    ///
    /// # Errors
    /// [`ModelError::File`] where the file is there and cannot be read.
    pub fn find(&self, name: &str) -> Result<Option<FileBytes>, ModelError> {
        match self {
            Self::Embedded(files) => {
                Ok(files.iter().find(|(n, _)| *n == name).map(|(_, bytes)| FileBytes::Embedded(bytes)))
            }
            Self::Directory(directory) => match File::open(directory.join(name)) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(self.fault(name, e)),
                // SAFETY: the map is only read. A file that another program shortens meanwhile can end the process, as with
                // every mapped checkpoint; publishers replace files instead of rewriting them.
                Ok(file) => {
                    unsafe { Mmap::map(&file) }.map(|m| Some(FileBytes::Mapped(m))).map_err(|e| self.fault(name, e))
                }
            },
        }
    }

    /// Sizes and times of change of all files, to tell later whether they are still the same.
    ///
    /// # Errors
    /// [`ModelError::File`] where the directory cannot be read.
    pub fn stamp(&self) -> Result<Stamp, ModelError> {
        let Self::Directory(directory) = self else { return Ok(Stamp(BTreeMap::new())) };
        let fault = |e: std::io::Error| self.fault("", e);
        let mut files = BTreeMap::new();
        for entry in std::fs::read_dir(directory).map_err(fault)? {
            let path = entry.map_err(fault)?.path();
            // Through links, as those of the Hub's cache are.
            if let Ok(data) = std::fs::metadata(&path) {
                files.insert(path, (data.len(), data.modified().ok()));
            }
        }
        Ok(Stamp(files))
    }

    /// An error about one of the files.
    pub fn fault(&self, name: &str, reason: impl ToString) -> ModelError {
        let path = match self {
            Self::Directory(directory) => directory.join(name).display().to_string(),
            Self::Embedded(_) => format!("(embedded) {name}"),
        };
        ModelError::File { path, reason: reason.to_string() }
    }
}

/// SHA-256 of one file as `sha256:<hex>`.
pub fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(bytes))
}

/// SHA-256 over the lines `<hex>  <name>` of the files in the order of their names: what
/// `sha256sum FILES | sha256sum` prints for the files in that order.
pub fn joint_digest(files: &mut [(&str, &[u8])]) -> String {
    files.sort_unstable_by_key(|(name, _)| *name);
    let lines: Vec<String> = files.par_iter().map(|(name, bytes)| format!("{}  {name}\n", hex(bytes))).collect();
    digest(lines.concat().as_bytes())
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}
