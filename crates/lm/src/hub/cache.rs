//! The Hub's cache on disk, in the layout that `huggingface_hub`, transformers and other tools of the Hub share:
//!
//! ```text
//! models--account--name/               or datasets--account--name/
//!   blobs/<digest>                     complete files, verified before they get this name
//!   blobs/<digest>.part                the bytes of a file received so far
//!   blobs/<digest>.lock                locked by the process that downloads the file
//!   snapshots/<commit>/config.json     links to blobs; a dataset has subdirectories
//!   refs/main                          the commit that a branch or tag pointed to
//! ```

use super::listing::{Listing, RemoteFile};
use super::names::is_commit;
use super::progress::DownloadProgress;
use super::{HubError, RepoId, RepoKind};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Interval between attempts to take a lock that another process holds.
const LOCK_RETRY: Duration = Duration::from_millis(100);

/// A repository in the cache, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubSnapshot {
    pub directory: PathBuf,
    /// Its commit, 40 hexadecimal digits.
    pub commit: String,
}

/// The directory of one repository in the cache.
pub struct CachedRepo {
    root: PathBuf,
}

impl CachedRepo {
    pub fn new(cache: &Path, kind: RepoKind, repo: &RepoId) -> Self {
        Self { root: cache.join(format!("{}--{}", kind.plural(), repo.as_str().replace('/', "--"))) }
    }

    /// The path of a file's content, whether or not it has been downloaded.
    pub fn blob(&self, file: &RemoteFile) -> PathBuf {
        self.root.join("blobs").join(file.digest.hex())
    }

    /// Returns true if the file is in the cache. A blob is verified before it gets its name, so comparing its size suffices.
    pub fn has(&self, file: &RemoteFile) -> bool {
        is_complete(&self.blob(file), file)
    }

    /// Waits until no other process downloads the file. The lock is released when the returned value is dropped, or when the
    /// process ends.
    pub fn lock(&self, file: &RemoteFile, progress: &DownloadProgress) -> Result<File, HubError> {
        let path = self.blob(file).with_extension("lock");
        make_parent(&path)?;
        let lock = File::options().create(true).append(true).open(&path).map_err(|e| HubError::disk(&path, e))?;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => progress.pause(LOCK_RETRY)?,
                Err(TryLockError::Error(e)) => return Err(HubError::disk(&path, e)),
            }
        }
    }

    /// Creates the snapshot, its files in the order given, and then the reference to it. All files must have been downloaded.
    pub fn publish(&self, listing: &Listing, files: &[&RemoteFile], revision: &str) -> Result<HubSnapshot, HubError> {
        let directory = self.snapshot(&listing.commit);
        for file in files {
            self.link(&directory, file)?;
        }
        if revision != listing.commit && self.reference(revision).as_ref() != Some(&listing.commit) {
            let path = self.reference_path(revision);
            make_parent(&path)?;
            std::fs::write(&path, &listing.commit).map_err(|e| HubError::disk(&path, e))?;
        }
        Ok(HubSnapshot { directory, commit: listing.commit.clone() })
    }

    /// The snapshot of a revision, if the cache contains one. What only the Hub knows is not detected: that a branch has
    /// moved, or which files the snapshot lacks.
    pub fn find(&self, revision: &str) -> Option<HubSnapshot> {
        let commit = if is_commit(revision) { revision.to_owned() } else { self.reference(revision)? };
        let directory = self.snapshot(&commit);
        directory.is_dir().then_some(HubSnapshot { directory, commit })
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.root.join("snapshots").join(commit)
    }

    /// The name of a branch may contain `/`, which makes directories of its parts.
    fn reference_path(&self, revision: &str) -> PathBuf {
        self.root.join("refs").join(revision)
    }

    fn reference(&self, revision: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.reference_path(revision)).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_commit(commit))
    }

    fn link(&self, snapshot: &Path, file: &RemoteFile) -> Result<(), HubError> {
        let link = snapshot.join(&file.name);
        make_parent(&link)?;
        if is_complete(&link, file) {
            return Ok(());
        }
        match std::fs::remove_file(&link) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(HubError::disk(&link, e)),
            _ => {}
        }
        #[cfg(unix)]
        let linked = {
            // From the directory of the link up to that of the repository.
            let up = "../".repeat(2 + file.name.matches('/').count());
            std::os::unix::fs::symlink(format!("{up}blobs/{}", file.digest.hex()), &link)
        };
        #[cfg(not(unix))]
        let linked = std::fs::hard_link(self.blob(file), &link);
        match linked {
            // Another process has created the link in the meantime.
            Err(_) if is_complete(&link, file) => Ok(()),
            linked => linked.map_err(|e| HubError::disk(&link, e)),
        }
    }
}

/// Creates the parent directory of a path.
pub fn make_parent(path: &Path) -> Result<(), HubError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|e| HubError::disk(parent, e))
}

fn is_complete(path: &Path, file: &RemoteFile) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.size)
}
