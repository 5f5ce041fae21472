//! A file that is there as a whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{Error, ErrorKind, Write};
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// A file on its way: written beside its place, removed again unless it gets there.
pub struct NewFile {
    target: PathBuf,
    partial: PathBuf,
    file: File,
}

impl NewFile {
    /// Begins a file that will replace `target`.
    ///
    /// # Errors
    /// Where no file can be there.
    pub fn create(target: &Path) -> std::io::Result<Self> {
        let Some(name) = target.file_name().filter(|_| !target.is_dir()) else {
            return Err(Error::new(ErrorKind::IsADirectory, "it is a directory"));
        };
        let mut hidden = OsString::from(".");
        hidden.push(name);
        // Not the number of the process: in containers that share a directory all have the same.
        hidden.push(format!(".{}.partial", Uuid::new_v4().simple()));
        let partial = target.with_file_name(hidden);
        let file = File::create_new(&partial)?;
        Ok(Self { target: target.to_owned(), partial, file })
    }

    /// Puts the whole content in place.
    ///
    /// # Errors
    /// Where the system refuses; then what was at `target` is there still.
    pub fn write(mut self, content: &[u8]) -> std::io::Result<()> {
        self.file.write_all(content)?;
        self.file.sync_all()?;
        fs::rename(&self.partial, &self.target)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // Not there any more once it is in place.
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
