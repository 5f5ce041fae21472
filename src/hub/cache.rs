//! The Hub's cache on disk, as `huggingface_hub`, transformers and hf-hub share it:
//!
//! ```text
//! models--account--name/
//!   blobs/<digest>                     whole files, verified before they get this name
//!   blobs/<digest>.part                what has arrived of a file
//!   blobs/<digest>.lock                held by whoever downloads it
//!   snapshots/<commit>/config.json     links to blobs
//!   refs/main                          the commit a branch or tag was at
//! ```

use super::listing::{Listing, RemoteFile};
use super::names::is_commit;
use super::plan;
use super::progress::Progress;
use super::{HubError, RepoId, Snapshot};
use hf_hub::{Cache, Repo, RepoType};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often a lock that another holds is tried.
const LOCK_RETRY: Duration = Duration::from_millis(100);

/// The place of one repository in the cache.
pub struct CachedRepo {
    cache: Cache,
    name: String,
    root: PathBuf,
}

impl CachedRepo {
    pub fn new(cache: &Cache, repo: &RepoId) -> Self {
        let root = cache.path().join(Repo::model(repo.to_string()).folder_name());
        Self { cache: cache.clone(), name: repo.to_string(), root }
    }

    /// Where the content of a file is, or will be.
    pub fn blob(&self, file: &RemoteFile) -> PathBuf {
        self.root.join("blobs").join(file.digest.hex())
    }

    /// Whether the file is there. A blob was verified before it got its name, so its size is proof enough.
    pub fn has(&self, file: &RemoteFile) -> bool {
        is_whole(&self.blob(file), file)
    }

    /// Waits until nobody else downloads the file. The lock goes with the returned value, or with the process.
    pub fn lock(&self, file: &RemoteFile, progress: &Progress) -> Result<File, HubError> {
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

    /// Makes the snapshot, the weights last, and then the reference to it. All files must be there.
    pub fn publish(&self, listing: &Listing, files: &[&RemoteFile], revision: &str) -> Result<Snapshot, HubError> {
        let directory = self.snapshot(&listing.commit);
        for file in files {
            self.link(&directory.join(&file.name), file)?;
        }
        if revision != listing.commit && self.reference(revision).as_ref() != Some(&listing.commit) {
            let written = self.cached(revision).create_ref(&listing.commit);
            written.map_err(|e| HubError::disk(&self.root.join("refs").join(revision), e))?;
        }
        Ok(Snapshot { directory, commit: listing.commit.clone() })
    }

    /// The snapshot of a revision, if the cache knows it and has what makes a model. What only the Hub could tell is not
    /// asked: whether a branch has moved, or whether there are more files of the tokenizer.
    pub fn find(&self, revision: &str) -> Option<Snapshot> {
        let commit = if is_commit(revision) { revision.to_owned() } else { self.reference(revision)? };
        let directory = self.snapshot(&commit);
        let files = plan::files(|name| directory.join(name).is_file(), |name| std::fs::read(directory.join(name)));
        files.is_ok_and(|files| plan::has_vocabulary(&files)).then_some(Snapshot { directory, commit })
    }

    fn cached(&self, revision: &str) -> hf_hub::CacheRepo {
        self.cache.repo(Repo::with_revision(self.name.clone(), RepoType::Model, revision.to_owned()))
    }

    fn snapshot(&self, commit: &str) -> PathBuf {
        self.cached(commit).pointer_path(commit)
    }

    fn reference(&self, revision: &str) -> Option<String> {
        let text = std::fs::read_to_string(self.root.join("refs").join(revision)).ok()?;
        Some(text.trim().to_owned()).filter(|commit| is_commit(commit))
    }

    fn link(&self, link: &Path, file: &RemoteFile) -> Result<(), HubError> {
        make_parent(link)?;
        if is_whole(link, file) {
            return Ok(());
        }
        match std::fs::remove_file(link) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(HubError::disk(link, e)),
            _ => {}
        }
        #[cfg(unix)]
        let linked = std::os::unix::fs::symlink(Path::new("../../blobs").join(file.digest.hex()), link);
        #[cfg(not(unix))]
        let linked = std::fs::hard_link(self.blob(file), link);
        match linked {
            // Another process made it meanwhile.
            Err(_) if is_whole(link, file) => Ok(()),
            linked => linked.map_err(|e| HubError::disk(link, e)),
        }
    }
}

/// Makes the directory a path is in.
pub fn make_parent(path: &Path) -> Result<(), HubError> {
    let parent = path.parent().unwrap_or(path);
    std::fs::create_dir_all(parent).map_err(|e| HubError::disk(parent, e))
}

fn is_whole(path: &Path, file: &RemoteFile) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.len() == file.size)
}
