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

    /// Takes the room, unless it is taken.
    pub async fn hold(&self) {
        let path = PathBuf::from(&*self.0);
        let taken = tokio::task::spawn_blocking(move || allocate(&path)).await;
        if let Ok(Err(error)) = taken {
            tracing::warn!(%error, "the disk has no room to keep in reserve; deletions may fail when it is full");
        }
    }

    /// Gives the room back; true if there was some.
    pub fn release(&self) -> bool {
        fs::remove_file(&self.0).is_ok()
    }
}

fn allocate(path: &Path) -> std::io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() == RESERVE) {
        return Ok(());
    }
    let _ = fs::remove_file(path);
    // Random, so that no file system compresses it.
    let mut chunk = vec![0; CHUNK];
    getrandom::fill(&mut chunk).map_err(Error::other)?;
    let mut file = private_file().open(path)?;
    let written = (0..RESERVE / CHUNK as u64).try_for_each(|_| file.write_all(&chunk)).and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = fs::remove_file(path);
    })
}
