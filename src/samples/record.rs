//! The records of a file, where they are in it, and why it cannot be read any further.

use crate::access::MemoryRefusal;
use crate::slots::NoSlot;
use documents::PassageTally;
use serde_json::{Map, Value};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The named values of a record, in the order of the file.
pub type Fields = Map<String, Value>;

/// The records of a file. An error ends them.
pub type FileRecords = Box<dyn Iterator<Item = Result<Record, ReadError>> + Send>;

/// One record, or what is wrong with it alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Where it begins.
    pub place: RecordPlace,
    /// Amount of the file read up to the end of it, in the units of [`Input::size`](super::InputFile::size).
    pub position: u64,
    /// Its fields, or why it has none.
    pub fields: Result<Fields, String>,
}

/// A place in a file, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum RecordPlace {
    #[strum(to_string = "line {0}")]
    Line(u64),
    #[strum(to_string = "element {0}")]
    Element(u64),
    #[strum(to_string = "row {0}")]
    Row(u64),
    #[strum(to_string = "passage {0}")]
    Passage(u64),
}

/// Counts of the documents read and of the text left out, once all of it is read.
#[derive(Clone, Debug, Default)]
pub struct PassageReport(Arc<OnceLock<(PassageTally, Vec<String>)>>);

impl PassageReport {
    /// Counts of what was read, and the files that were skipped with the reason; `None` before the end.
    #[must_use]
    pub fn get(&self) -> Option<&(PassageTally, Vec<String>)> {
        self.0.get()
    }

    /// Notes the end of the reading; only the first counts.
    pub(super) fn set(&self, tally: PassageTally, skipped: Vec<String>) {
        // Asked for another record after the end, the reader comes here again.
        let _ = self.0.set((tally, skipped));
    }
}

/// Counts of the texts of samples that were cut until now, and of what was left out of them.
#[derive(Clone, Debug, Default)]
pub struct RunningTally(Arc<Mutex<PassageTally>>);

impl RunningTally {
    pub(super) fn add(&self, tally: PassageTally) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) += tally;
    }

    pub(super) fn get(&self) -> PassageTally {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A fault that ends the reading of a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Io(std::io::Error),
    /// Other files of this kind are being read.
    #[error("other Parquet files are being read; try again later")]
    Busy(NoSlot),
    /// A record takes more memory than there is for the request.
    #[error(transparent)]
    Memory(MemoryRefusal),
    /// The input is not what it is read as.
    #[error("{0}")]
    Unfit(String),
    /// A record cannot be read, nor what comes after it.
    #[error("{place}: {fault}")]
    Broken { place: RecordPlace, fault: String },
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        error.downcast().map_or_else(Self::Io, Self::Memory)
    }
}

impl ReadError {
    /// The fault of a record that cannot be read for this error.
    pub(super) fn broken(place: RecordPlace, error: std::io::Error) -> Self {
        match Self::from(error) {
            Self::Io(error) => Self::Broken { place, fault: error.to_string() },
            refusal => refusal,
        }
    }
}
