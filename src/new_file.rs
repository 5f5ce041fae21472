//! Files that are written completely or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// A file that is written under a temporary name beside its target, and deleted unless it is completed.
pub struct NewFile {
    target: PathBuf,
    partial: PathBuf,
    file: File,
}

impl NewFile {
    /// Creates a temporary file that will replace `target`.
    ///
    /// # Errors
    /// If `target` is a directory, or no file can be created beside it.
    pub fn create(target: &Path) -> std::io::Result<Self> {
        let Some(name) = target.file_name().filter(|_| !target.is_dir()) else {
            return Err(Error::new(ErrorKind::IsADirectory, "it is a directory"));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        // Process ids are not unique: in containers that share a directory, all processes may have the same one.
        hidden.push(format!(".{}.partial", Uuid::new_v4().simple()));
        let partial = target.with_file_name(hidden);
        let file = File::create_new(&partial)?;
        Ok(Self { target: target.to_owned(), partial, file })
    }

    /// Writes the content and moves the file to `target`.
    ///
    /// # Errors
    /// Errors of the file system; in that case `target` is unchanged.
    pub fn write(mut self, content: &[u8]) -> std::io::Result<()> {
        self.file.write_all(content)?;
        self.complete()
    }

    /// The file to write to; it has its name only once it is complete.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Moves the file to `target`.
    ///
    /// # Errors
    /// Errors of the file system; in that case `target` is unchanged.
    pub fn complete(self) -> std::io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.target)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // The temporary file no longer exists once it has been moved.
        let _ = fs::remove_file(&self.partial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_left() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("counts.json");
        drop(NewFile::create(&target).unwrap());
        assert_eq!(names(directory.path()), [""; 0]);
        NewFile::create(&target).unwrap().write(b"first").unwrap();
        drop(NewFile::create(&target).unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"first");
        NewFile::create(&target).unwrap().write(b"2nd").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"2nd");
        assert_eq!(names(directory.path()), ["counts.json"]);
    }

    #[test]
    fn a_place_where_no_file_can_be_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        assert!(NewFile::create(directory.path()).is_err());
        assert!(NewFile::create(Path::new("/")).is_err());
        assert!(NewFile::create(&directory.path().join("absent/counts.json")).is_err());
        assert_eq!(names(directory.path()), [""; 0]);
    }
}
