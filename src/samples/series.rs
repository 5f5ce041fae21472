//! The records of several files, as if they were one.

use super::error::ReadError;
use super::input::InputFile;
use super::options::ReadOptions;
use super::place::RecordPlace;
use super::read::records;
use super::record::{FileRecords, Record};
use std::path::PathBuf;
use std::vec::IntoIter;

/// Files that are read one after another. Rows are counted through all of them.
struct Series {
    options: ReadOptions,
    current: FileRecords,
    /// The bytes of the current file, and of those before it.
    size: u64,
    before: u64,
    /// Rows of the files before the current one, and with what was read of it.
    rows_before: u64,
    rows: u64,
    next: IntoIter<PathBuf>,
}

/// Returns the records of files of tables; there must be at least one file.
pub fn records_of_files(files: Vec<PathBuf>, options: &ReadOptions) -> Result<FileRecords, ReadError> {
    let mut next = files.into_iter();
    let first = next.next().ok_or_else(|| ReadError::Unfit("there is no file".to_owned()))?;
    let input = InputFile::open(&first)?;
    let size = input.size().unwrap_or(0);
    let current = records(input, options)?;
    Ok(Box::new(Series { options: options.clone(), current, size, before: 0, rows_before: 0, rows: 0, next }))
}

impl Series {
    fn open(&mut self, path: PathBuf) -> Result<(), ReadError> {
        let input = InputFile::open(&path)?;
        self.before += self.size;
        self.size = input.size().unwrap_or(0);
        self.rows_before = self.rows;
        self.current = records(input, &self.options)?;
        Ok(())
    }

    fn shifted(&mut self, place: RecordPlace) -> RecordPlace {
        let RecordPlace::Row(row) = place else { return place };
        self.rows = self.rows_before + row;
        RecordPlace::Row(self.rows)
    }
}

impl Iterator for Series {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.current.next() {
                Some(Ok(Record { place, position, fields })) => {
                    return Some(Ok(Record { place: self.shifted(place), position: self.before + position, fields }));
                }
                Some(Err(ReadError::Broken { place, fault })) => {
                    return Some(Err(ReadError::Broken { place: self.shifted(place), fault }));
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {}
            }
            let path = self.next.next()?;
            if let Err(error) = self.open(path) {
                self.next = Vec::new().into_iter();
                return Some(Err(error));
            }
        }
    }
}
