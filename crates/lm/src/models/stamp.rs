//! The metadata of files, which shows that they have changed.

use super::error::ModelError;
use std::collections::BTreeMap;
use std::fs::Metadata;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Longer than the tick of the clock that file systems take times from: two changes within one tick have the same time.
const TICK: Duration = Duration::from_millis(50);

/// Maximum number of reads of files that are being written, a tick apart, before they are refused.
const MOST_LOOKS: usize = 20;

/// Start and end of a read of the files' metadata.
type LookTimes = RangeInclusive<SystemTime>;

/// The state of files, alone or in directories. Without any nothing changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp(BTreeMap<PathBuf, FileState>);

/// State of one file in the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FileState {
    length: u64,
    modified: Option<SystemTime>,
    /// The last change of content or metadata. No program can set it, unlike the time of modification, which stands for it
    /// where the system has no such time.
    changed: Option<SystemTime>,
    /// The number of the file, where the system has one: another file under the same name has another.
    inode: u64,
}

impl Stamp {
    /// The state of the files of these paths and in the directories of these paths, behind links too. If one has just changed,
    /// this waits for the next tick of the clock: whatever happens to the files after this call shows in their times.
    ///
    /// # Errors
    /// [`ModelError::File`] if a path cannot be read, or naming a file that is being written.
    pub fn take(paths: &[PathBuf]) -> Result<Self, ModelError> {
        Self::settle(|| Self::look(paths))
    }

    /// The state of the files as it is, to be compared with one that was [taken](Self::take) before.
    pub fn now(paths: &[PathBuf]) -> Result<Self, ModelError> {
        Ok(Self::look(paths)?.0)
    }

    /// Calls `look` until no file is fresh.
    fn settle(mut look: impl FnMut() -> Result<(Self, LookTimes), ModelError>) -> Result<Self, ModelError> {
        let mut written = PathBuf::new();
        for _ in 0..MOST_LOOKS {
            let (stamp, times) = look()?;
            match stamp.fresh(&times) {
                None => return Ok(stamp),
                Some(path) => path.clone_into(&mut written),
            }
            std::thread::sleep(TICK);
        }
        Err(file_error(&written, "it is still being written"))
    }

    fn look(paths: &[PathBuf]) -> Result<(Self, LookTimes), ModelError> {
        let begin = SystemTime::now();
        let mut files = BTreeMap::new();
        for path in paths {
            Self::add(path, &mut files).map_err(|error| file_error(path, &error.to_string()))?;
        }
        Ok((Self(files), begin..=SystemTime::now()))
    }

    /// Adds a file, or the files in a directory.
    fn add(path: &Path, files: &mut BTreeMap<PathBuf, FileState>) -> std::io::Result<()> {
        let data = std::fs::metadata(path)?;
        if !data.is_dir() {
            files.insert(path.to_owned(), FileState::new(&data));
            return Ok(());
        }
        for entry in std::fs::read_dir(path)? {
            let path = entry?.path();
            // Follows links, such as those in the Hub's cache. No file of a model is in a directory below.
            if let Ok(data) = std::fs::metadata(&path)
                && data.is_file()
            {
                files.insert(path, FileState::new(&data));
            }
        }
        Ok(())
    }

    /// A file that another change could have left at the same time as the one that was seen. Times beyond the look are those
    /// of another clock, and say nothing.
    fn fresh(&self, times: &LookTimes) -> Option<&Path> {
        let past = times.start().checked_sub(TICK);
        let is_fresh = |changed: SystemTime| past.is_none_or(|past| changed > past) && changed <= *times.end();
        let fresh = self.0.iter().find(|(_, state)| state.changed.is_some_and(is_fresh));
        fresh.map(|(path, _)| path.as_path())
    }

    /// A file that was changed, removed or added between this and a later stamp.
    pub fn difference<'a>(&'a self, later: &'a Self) -> Option<&'a Path> {
        let changed = self.0.iter().find(|(path, state)| later.0.get(*path) != Some(*state));
        let added = || later.0.iter().find(|(path, _)| !self.0.contains_key(*path));
        changed.or_else(added).map(|(path, _)| path.as_path())
    }
}

impl FileState {
    #[cfg(unix)]
    fn new(data: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        let since_epoch = u64::try_from(data.ctime()).ok().zip(u32::try_from(data.ctime_nsec()).ok());
        let time = |(seconds, nanos)| SystemTime::UNIX_EPOCH.checked_add(Duration::new(seconds, nanos));
        let changed = since_epoch.and_then(time);
        Self { length: data.len(), modified: data.modified().ok(), changed, inode: data.ino() }
    }

    #[cfg(not(unix))]
    fn new(data: &Metadata) -> Self {
        let modified = data.modified().ok();
        Self { length: data.len(), modified, changed: modified, inode: 0 }
    }
}

fn file_error(path: &Path, reason: &str) -> ModelError {
    ModelError::File { path: path.display().to_string(), reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, read, rename, write};

    /// A directory with one file, and the file's path.
    fn directory() -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.safetensors");
        write(&path, "weights").unwrap();
        (directory, path)
    }

    /// Gives a file the time of modification that it had before.
    fn set_back(path: &Path, modified: SystemTime) {
        File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }

    #[test]
    fn what_is_only_read_does_not_differ() {
        let (directory, path) = directory();
        let before = Stamp::take(&[directory.path().to_owned()]).unwrap();
        read(&path).unwrap();
        std::fs::create_dir(directory.path().join("checkpoints")).unwrap();
        let after = Stamp::take(&[directory.path().to_owned()]).unwrap();
        assert_eq!((before.difference(&after), before == after), (None, true));
    }

    #[cfg(unix)]
    #[test]
    fn a_rewritten_file_differs_whatever_length_and_time_it_is_given() {
        let (directory, path) = directory();
        let before = Stamp::take(&[directory.path().to_owned()]).unwrap();
        let modified = std::fs::metadata(&path).unwrap().modified().unwrap();
        write(&path, "WEIGHTS").unwrap();
        set_back(&path, modified);
        let rewritten = Stamp::take(&[directory.path().to_owned()]).unwrap();
        assert_eq!(before.difference(&rewritten), Some(path.as_path()));

        let other = directory.path().with_extension("other");
        write(&other, "weights").unwrap();
        set_back(&other, modified);
        rename(&other, &path).unwrap();
        let replaced = Stamp::take(&[directory.path().to_owned()]).unwrap();
        assert_eq!(rewritten.difference(&replaced), Some(path.as_path()));
    }

    #[test]
    fn files_that_come_and_go_differ() {
        let (directory, path) = directory();
        let one = Stamp::take(&[directory.path().to_owned()]).unwrap();
        let added = directory.path().join("config.json");
        write(&added, "{}").unwrap();
        let two = Stamp::take(&[directory.path().to_owned()]).unwrap();
        assert_eq!(one.difference(&two), Some(added.as_path()));
        assert_eq!(two.difference(&one), Some(added.as_path()));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(two.difference(&Stamp::take(&[directory.path().to_owned()]).unwrap()), Some(path.as_path()));
    }

    #[test]
    fn a_change_right_after_the_stamp_shows() {
        let (directory, path) = directory();
        for round in 0..5 {
            write(&path, format!("{round} first")).unwrap();
            let before = Stamp::take(&[directory.path().to_owned()]).unwrap();
            let now = SystemTime::now();
            assert_eq!(before.fresh(&(now..=now)), None, "a change now could have the same time");
            write(&path, format!("{round} later")).unwrap();
            assert_ne!(before, Stamp::take(&[directory.path().to_owned()]).unwrap(), "round {round}");
        }
    }

    #[test]
    fn only_a_change_within_the_last_tick_is_fresh() {
        let (directory, path) = directory();
        let (stamp, _) = Stamp::look(&[directory.path().to_owned()]).unwrap();
        let changed = stamp.0[&path].changed.unwrap();
        let fresh = |begin, end| stamp.fresh(&(begin..=end));
        assert_eq!(fresh(changed + TICK / 2, changed + TICK), Some(path.as_path()));
        assert_eq!(fresh(changed - TICK, changed + TICK), Some(path.as_path()), "it changed during the look");
        assert_eq!(fresh(changed + TICK, changed + TICK), None);
        assert_eq!(fresh(changed - TICK * 2, changed - TICK), None, "the future says nothing");
    }

    #[test]
    fn a_file_that_is_written_all_the_time_is_named() {
        let (directory, path) = directory();
        let mut looks = 0;
        let refusal = Stamp::settle(|| {
            looks += 1;
            let (stamp, _) = Stamp::look(&[directory.path().to_owned()]).unwrap();
            let changed = stamp.0[&path].changed.unwrap();
            Ok((stamp, changed..=changed))
        });
        let said = refusal.unwrap_err().to_string();
        assert_eq!((said, looks), (format!("{}: it is still being written", path.display()), MOST_LOOKS));
    }
}
