//! Writes samples into the store one after another: those of a dataset, or those that come with a job.

use super::error::DatasetError;
use super::sample::Sample;
use super::sample_blocks::BlockWriter;
use super::totals::{SampleTotals, TotalsCounter};
use crate::store::{DatasetKey, Store};
use mia::texts::sha256_address;
use sha2::{Digest, Sha256};

/// The digest of samples that are added one by one: SHA-256 over each as a line of JSON, with the fields of [`Sample`] in their
/// order, without those that are absent. Everything that a client says of a sample is part of it.
#[derive(Default)]
pub struct DatasetDigest(Sha256);

impl DatasetDigest {
    /// Adds the next sample, and returns it as JSON.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where it cannot be written as JSON.
    pub fn add(&mut self, sample: &Sample) -> Result<String, DatasetError> {
        let json = serde_json::to_string(sample).map_err(|error| DatasetError::Internal(error.to_string()))?;
        self.0.update(&json);
        self.0.update(b"\n");
        Ok(json)
    }

    /// `sha256:` and the digest in hexadecimal digits.
    #[must_use]
    pub fn address(self) -> String {
        sha256_address(self.0)
    }
}

/// Samples that are being prepared for the store: blocks, their digest and their counts. Pure.
#[derive(Default)]
pub struct DatasetEncoder {
    blocks: BlockWriter,
    digest: DatasetDigest,
    totals: TotalsCounter,
    bytes: u64,
}

/// Samples that have been prepared.
#[derive(Clone, Debug)]
pub struct EncodedDataset {
    /// The address of the content, as [`DatasetDigest`] has it.
    pub id: String,
    pub totals: SampleTotals,
    /// The last block.
    pub rest: Option<String>,
}

impl DatasetEncoder {
    /// Adds a sample; a block, where one is full with it.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where it cannot be written as JSON.
    pub fn add(&mut self, sample: &Sample) -> Result<Option<String>, DatasetError> {
        let json = self.digest.add(sample)?;
        self.totals.add(sample)?;
        self.bytes += json.len() as u64 + 1;
        Ok(self.blocks.add(&json))
    }

    /// Size of the samples so far in bytes, as lines of JSON.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Completes the dataset after the last sample.
    #[must_use]
    pub fn finish(self) -> EncodedDataset {
        EncodedDataset { id: self.digest.address(), totals: self.totals.totals(), rest: self.blocks.finish() }
    }
}

/// A dataset that is being written. What is not completed is dropped.
pub struct DatasetWriter {
    store: Store,
    key: DatasetKey,
    blocks: usize,
    completed: bool,
}

impl DatasetWriter {
    /// Begins a dataset of an owner; `retain` says whether its texts are kept after a job has used them.
    ///
    /// # Errors
    /// [`DatasetError::Store`].
    pub async fn begin(store: &Store, owner: &str, retain: bool) -> Result<Self, DatasetError> {
        let key = store.begin_dataset(owner, retain).await?;
        Ok(Self { store: store.clone(), key, blocks: 0, completed: false })
    }

    /// Writes the next block.
    ///
    /// # Errors
    /// [`DatasetError::Store`].
    pub async fn write(&mut self, block: &str) -> Result<(), DatasetError> {
        self.store.add_block(self.key, self.blocks, block).await?;
        self.blocks += 1;
        Ok(())
    }

    /// Completes the dataset under its id or, without one, as the samples of a job. The key under which the samples are.
    ///
    /// # Errors
    /// [`DatasetError::Store`].
    pub async fn complete(mut self, id: Option<&str>, totals: &SampleTotals) -> Result<DatasetKey, DatasetError> {
        let description = serde_json::to_string(totals).map_err(|error| DatasetError::Internal(error.to_string()))?;
        let key = self.store.complete_dataset(self.key, id, &description).await?;
        self.completed = true;
        Ok(key)
    }
}

impl Drop for DatasetWriter {
    fn drop(&mut self) {
        if self.completed {
            return;
        }
        let (store, key) = (self.store.clone(), self.key);
        // Without a runtime the process ends, and what is left over is dropped later as abandoned.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                if let Err(error) = store.drop_dataset(key).await {
                    tracing::warn!(%error, "samples that are not needed stay in the store for now");
                }
            });
        }
    }
}
