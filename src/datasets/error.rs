//! Why a dataset cannot be had, used or written.

use crate::store::StoreError;

/// Why a dataset cannot be had, used or written.
#[derive(Debug, thiserror::Error)]
pub enum DatasetError {
    #[error("there is no dataset of this id")]
    Unknown,
    #[error("an unfinished job uses the dataset")]
    InUse,
    #[error("the texts of the dataset were not retained: it was uploaded with `retain=false`, and a job has used it")]
    TextsGone,
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("internal error: {0}")]
    Internal(String),
}
