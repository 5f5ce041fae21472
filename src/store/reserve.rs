//! Room on the disk of a store in SQLite, kept by a file beside it.

use super::files::{beside, private_file};
use std::fs;
use std::io::{Error, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Size of the reserve in bytes; the largest blocks of samples and scores are shorter.
pub const RESERVE: u64 = 16 << 20;
/// Bytes that are written at once.
const CHUNK: usize = 1 << 20;

/// The file that keeps room.
#[derive(Clone, Debug)]
pub struct Reserve(Arc<Path>);

impl Reserve {
    pub fn new(store: &Path) -> Self {
        Self(beside(store, ".reserve").into())
    }

    /// Takes the room, or as much of it as there is, unless it is taken.
    pub async fn hold(&self) {
        let path = PathBuf::from(&*self.0);
        let taken = tokio::task::spawn_blocking(move || allocate(&path)).await;
        if let Ok(Err(error)) = taken {
            tracing::warn!(%error, "the disk has too little room to keep in reserve; deletions may fail when it is full");
        }
    }

    /// Gives the room back; true if there was some.
    pub fn release(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}

fn allocate(path: &Path) -> std::io::Result<()> {
    let mut length = fs::metadata(path).map_or(0, |file| file.len());
    if length >= RESERVE {
        return Ok(());
    }
    // Random, so that no file system compresses it.
    let mut chunk = vec![0; CHUNK];
    getrandom::fill(&mut chunk).map_err(Error::other)?;
    let mut file = private_file().append(true).open(path)?;
    while length < RESERVE {
        // A part of a chunk is left free: SQLite needs some room to go on.
        file.write_all(&chunk).inspect_err(|_| file.set_len(length).unwrap_or_default())?;
        length += CHUNK as u64;
    }
    file.sync_all()
}
