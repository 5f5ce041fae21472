//! The samples of a job, read a block at a time, so that no more than a block of texts is in memory.

use super::sample::Sample;
use crate::retry::until_final;
use crate::store::{ClaimedJob, DatasetKey, DatasetRow, Store, StoreError};
use futures::stream::{self, Stream, TryStreamExt};
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
        /// True if the texts stay when the job has ended.
        retain: bool,
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
        let Some(key) = job.dataset else { return Ok(None) };
        let dataset = until_final(StoreError::is_retryable, || store.dataset_of_job(key)).await?;
        Ok(dataset.and_then(|dataset| Self::stored(store, &dataset)))
    }

    /// Returns the samples of a dataset; `None` if its texts were deleted.
    #[must_use]
    pub fn stored(store: &Store, dataset: &DatasetRow) -> Option<Self> {
        let &DatasetRow { key, retain, has_texts, .. } = dataset;
        has_texts.then(|| Self::Stored { store: store.clone(), dataset: key, retain })
    }

    /// Returns true if the texts may be quoted in what is kept of the job.
    #[must_use]
    pub fn are_retained(&self) -> bool {
        match self {
            Self::Memory(_) => true,
            Self::Stored { retain, .. } => *retain,
        }
    }

    /// All samples in order, each with its place from 0.
    pub fn samples(&self) -> impl Stream<Item = Result<(usize, Sample), StoreError>> + '_ {
        let blocks = stream::try_unfold(0, move |block| async move {
            Ok::<_, StoreError>(self.block(block).await?.map(|samples| (samples, block + 1)))
        });
        let samples = blocks.map_ok(|samples| stream::iter(samples.into_iter().map(Ok))).try_flatten();
        let mut next = 0;
        samples.map_ok(move |sample| {
            next += 1;
            (next - 1, sample)
        })
    }

    /// The samples of one block; none after the last. A store that does not answer is waited for.
    async fn block(&self, block: usize) -> Result<Option<Vec<Sample>>, StoreError> {
        match self {
            Self::Memory(samples) => Ok(samples.chunks(BLOCK_SAMPLES).nth(block).map(<[Sample]>::to_vec)),
            Self::Stored { store, dataset, .. } => {
                let content = until_final(StoreError::is_retryable, || store.sample_block(*dataset, block)).await?;
                content.map(|content| parse(&content)).transpose()
            }
        }
    }
}

fn parse(content: &str) -> Result<Vec<Sample>, StoreError> {
    let sample = |line| serde_json::from_str(line).map_err(|error| StoreError::Damaged(format!("a sample: {error}")));
    content.lines().map(sample).collect()
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
