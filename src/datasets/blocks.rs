//! Samples in the store: written and read a block at a time, so that no more than a block of texts is in memory.

use super::DatasetError;
use super::sample::Sample;
use super::totals::{SampleTotals, TotalsCounter};
use crate::retry::until_final;
use crate::store::{ClaimedJob, ContentCheck, DatasetKey, DatasetRow, Store, StoreError};
use futures::stream::{self, Stream, TryStreamExt};
use mia::texts::sha256_address;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Maximum number of samples of a block.
const BLOCK_SAMPLES: usize = 500;
/// A block ends with the sample that makes it longer than this.
const BLOCK_BYTES: usize = 1 << 20;

/// Where the samples of a job are.
#[derive(Clone, Debug)]
pub enum SampleBlocks {
    Memory(Arc<[Sample]>),
    /// In the store, as a complete dataset.
    Stored {
        store: Store,
        dataset: DatasetKey,
        /// True for a dataset of its own, false for the samples that came with a job.
        is_named: bool,
        /// True if the texts stay when the job has ended.
        retain: bool,
        /// The address of the content, if it is known.
        digest: Option<String>,
    },
}

/// Makes blocks, as text, of samples that come one after another.
#[derive(Debug, Default)]
pub struct BlockWriter {
    content: String,
    samples: usize,
}

impl BlockWriter {
    /// Adds the JSON of a sample; the block, where it is full with it.
    pub fn add(&mut self, json: &str) -> Option<String> {
        self.content.push_str(json);
        self.content.push('\n');
        self.samples += 1;
        (self.samples == BLOCK_SAMPLES || self.content.len() > BLOCK_BYTES).then(|| self.take())
    }

    /// The last block, where there is something in it.
    pub fn finish(mut self) -> Option<String> {
        (self.samples > 0).then(|| self.take())
    }

    fn take(&mut self) -> String {
        self.samples = 0;
        std::mem::take(&mut self.content)
    }
}

impl SampleBlocks {
    /// Returns the samples of a job; `None` if they were deleted.
    ///
    /// # Errors
    /// [`StoreError`], where that would not pass.
    pub async fn of_job(store: &Store, job: &ClaimedJob) -> Result<Option<Self>, StoreError> {
        let dataset = until_final(StoreError::is_retryable, || store.dataset_of(job.id)).await?;
        Ok(dataset.and_then(|dataset| Self::stored(store, &dataset)))
    }

    /// Returns the samples of a dataset; `None` if its texts were deleted.
    #[must_use]
    pub fn stored(store: &Store, dataset: &DatasetRow) -> Option<Self> {
        let DatasetRow { key, retain, id, digest, .. } = dataset;
        let stored = || Self::Stored {
            store: store.clone(),
            dataset: *key,
            is_named: id.is_some(),
            retain: *retain,
            digest: digest.clone(),
        };
        dataset.has_texts.then(stored)
    }

    /// Returns the key of the dataset that the samples are of; `None` if they came with a job.
    #[must_use]
    pub fn dataset(&self) -> Option<DatasetKey> {
        match self {
            Self::Memory(_) => None,
            Self::Stored { dataset, is_named, .. } => is_named.then_some(*dataset),
        }
    }

    /// Returns true if the texts may be quoted in what is kept of the job.
    #[must_use]
    pub fn are_retained(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Stored { retain, .. } => *retain,
        }
    }

    /// Returns all samples in order, each with its place from 0. Stored ones that are not those of the dataset or job any more end in
    /// [`StoreError::Damaged`].
    pub fn samples(&self) -> impl Stream<Item = Result<(usize, Sample), StoreError>> + '_ {
        let digest = match self {
            Self::Memory(_) => None,
            Self::Stored { digest, .. } => digest.clone(),
        };
        let blocks = stream::try_unfold((0, ContentCheck::new(digest)), move |(block, mut check)| async move {
            match self.block(block, &mut check).await? {
                Some(samples) => Ok(Some((samples, (block + 1, check)))),
                None => check.finish().map(|()| None),
            }
        });
        let samples = blocks.map_ok(|samples| stream::iter(samples.into_iter().map(Ok))).try_flatten();
        let mut next = 0;
        samples.map_ok(move |sample| {
            next += 1;
            (next - 1, sample)
        })
    }

    /// Returns the samples of one block, or `None` after the last, and adds what is stored to `check`. A store that does not answer is
    /// waited for.
    async fn block(&self, block: usize, check: &mut ContentCheck) -> Result<Option<Vec<Sample>>, StoreError> {
        match self {
            Self::Memory(samples) => Ok(samples.chunks(BLOCK_SAMPLES).nth(block).map(<[Sample]>::to_vec)),
            Self::Stored { store, dataset, .. } => {
                let content = until_final(StoreError::is_retryable, || store.sample_block(*dataset, block)).await?;
                content.iter().for_each(|content| check.add(content));
                content.map(|content| parse(&content)).transpose()
            }
        }
    }
}

fn parse(content: &str) -> Result<Vec<Sample>, StoreError> {
    let sample = |line| serde_json::from_str(line).map_err(|error| StoreError::Damaged(format!("a sample: {error}")));
    content.lines().map(sample).collect()
}

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

/// SHA-256 of a sample as a line of JSON, as [`DatasetDigest`] has it, without the end of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleDigest(#[serde(with = "hex::serde")] [u8; 32]);

impl SampleDigest {
    /// Computes the digest of a sample that [`DatasetDigest::add`] returned as JSON.
    #[must_use]
    pub fn new(json: &str) -> Self {
        Self(Sha256::digest(json).into())
    }

    /// Returns the digest in hexadecimal digits.
    #[must_use]
    pub fn hexadecimal(&self) -> String {
        hex::encode(self.0)
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
    pub async fn begin(store: &Store, owner: &str, retain: bool) -> Result<Self, DatasetError> {
        let key = store.begin_dataset(owner, retain).await?;
        Ok(Self { store: store.clone(), key, blocks: 0, completed: false })
    }

    pub async fn write(&mut self, block: &str) -> Result<(), DatasetError> {
        self.store.add_block(self.key, self.blocks, block).await?;
        self.blocks += 1;
        Ok(())
    }

    /// Completes the dataset under its id or, without one, as the samples of a job. The key under which the samples are.
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

#[derive(Clone, Debug)]
pub enum SubmittedSamples {
    /// They come along, and are deleted with the job.
    Inline(Vec<Sample>),
    Dataset(DatasetRow),
}

impl SubmittedSamples {
    /// Returns the totals of the samples.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where a dataset has another description, or a sample is damaged.
    pub fn totals(&self) -> Result<SampleTotals, DatasetError> {
        match self {
            Self::Inline(samples) => SampleTotals::count(samples),
            Self::Dataset(dataset) => serde_json::from_str(&dataset.description)
                .map_err(|error| DatasetError::Internal(format!("a dataset as it is stored: {error}"))),
        }
    }

    #[must_use]
    pub fn dataset_id(&self) -> Option<String> {
        match self {
            Self::Inline(_) => None,
            Self::Dataset(dataset) => dataset.id.clone(),
        }
    }

    /// Returns a text that identifies these samples.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where they cannot be written as JSON.
    pub fn fingerprint(&self) -> Result<String, DatasetError> {
        match self {
            Self::Inline(samples) => {
                serde_json::to_string(samples).map_err(|error| DatasetError::Internal(error.to_string()))
            }
            Self::Dataset(dataset) => Ok(dataset.id.clone().unwrap_or_default()),
        }
    }

    /// The digest of the samples, as datasets are named.
    ///
    /// # Errors
    /// [`DatasetError::Internal`] where they cannot be written as JSON.
    pub fn digest(&self) -> Result<String, DatasetError> {
        match self {
            Self::Inline(samples) => {
                let mut digest = DatasetDigest::default();
                samples.iter().try_for_each(|sample| digest.add(sample).map(|_| ()))?;
                Ok(digest.address())
            }
            Self::Dataset(dataset) => Ok(dataset.id.clone().unwrap_or_default()),
        }
    }

    /// The key under which they are in the store, and their digest; those that come along are written there now for their
    /// owner.
    pub async fn stored(&self, store: &Store, owner: &str) -> Result<(DatasetKey, String), DatasetError> {
        let samples = match self {
            Self::Inline(samples) => samples,
            Self::Dataset(dataset) if dataset.has_texts => return Ok((dataset.key, self.digest()?)),
            Self::Dataset(_) => return Err(DatasetError::TextsGone),
        };
        let mut writer = DatasetWriter::begin(store, owner, true).await?;
        let mut encoder = DatasetEncoder::default();
        for sample in samples {
            if let Some(block) = encoder.add(sample)? {
                writer.write(&block).await?;
            }
        }
        let encoded = encoder.finish();
        if let Some(block) = &encoded.rest {
            writer.write(block).await?;
        }
        Ok((writer.complete(None, &encoded.totals).await?, encoded.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;

    fn sample(number: usize) -> Sample {
        // Line breaks and what looks like one are parts of texts.
        Sample { text: format!("text\n{number}\r\u{2028}\u{0}"), ..Sample::default() }
    }

    #[test]
    fn samples_come_in_order_across_blocks() {
        let samples: Arc<[Sample]> = (0..2 * BLOCK_SAMPLES + 3).map(sample).collect();
        let read: Vec<(usize, Sample)> =
            block_on(SampleBlocks::Memory(Arc::clone(&samples)).samples().try_collect()).unwrap();
        assert_eq!(read.len(), samples.len());
        assert!(read.iter().enumerate().all(|(place, (index, read))| *index == place && *read == samples[place]));
    }

    #[test]
    fn blocks_are_bounded_and_read_as_they_were_written() {
        let mut writer = BlockWriter::default();
        let samples: Vec<Sample> = (0..BLOCK_SAMPLES + 1).map(sample).collect();
        let json = |sample: &Sample| serde_json::to_string(sample).unwrap();
        let mut blocks: Vec<String> = samples.iter().filter_map(|sample| writer.add(&json(sample))).collect();
        blocks.extend(writer.finish());
        assert_eq!(blocks.iter().map(|block| block.lines().count()).collect::<Vec<_>>(), [BLOCK_SAMPLES, 1]);
        let read: Vec<Sample> = blocks.iter().flat_map(|block| parse(block).unwrap()).collect();
        assert_eq!(read, samples);
        let mut writer = BlockWriter::default();
        assert!(writer.add(&"x".repeat(BLOCK_BYTES)).is_some());
        assert!(writer.finish().is_none());
        assert!(matches!(parse("nonsense"), Err(StoreError::Damaged(_))));
    }
}
