//! Samples: labelled texts, as they are uploaded as datasets or come along with a job, and as they are kept in the store.
//!
//! Samples are written and read a block at a time, so that no more than a block of texts is in memory.

mod column_text;
mod error;
mod sample;
mod sample_blocks;
mod submitted;
mod totals;
mod writer;

pub use column_text::{ColumnText, ExtraColumns};
pub use error::DatasetError;
pub use sample::{Label, MAX_GROUPS, Sample, SampleId};
pub use sample_blocks::SampleBlocks;
pub use submitted::SubmittedSamples;
pub use totals::SampleTotals;
pub use writer::{DatasetDigest, DatasetEncoder, DatasetWriter, EncodedDataset};
