//! Why a file cannot be read any further.

use super::place::RecordPlace;

/// A fault that ends the reading of a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// The input is not what it is read as.
    #[error("{0}")]
    Unfit(String),
    /// A record cannot be read, nor what comes after it.
    #[error("{place}: {fault}")]
    Broken {
        /// The record.
        place: RecordPlace,
        /// Description of the fault.
        fault: String,
    },
}
