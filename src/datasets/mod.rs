//! Samples: labelled texts, as they are uploaded as datasets or come along with a job, and as they are kept in the store.
//!
//! Samples are written and read a block at a time, so that no more than a block of texts is in memory.

mod blocks;
mod column_text;
mod sample;
mod totals;

pub use blocks::{
    DatasetDigest, DatasetEncoder, DatasetWriter, EncodedDataset, SampleBlocks, SampleDigest, SubmittedSamples,
};
pub use column_text::{ColumnText, ExtraColumns};
pub use sample::{Label, MAX_GROUPS, Sample, SampleId};
pub use totals::{SampleTotals, estimated_tokens};

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
