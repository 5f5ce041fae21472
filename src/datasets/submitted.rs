//! The samples that a job is submitted with.

use super::error::DatasetError;
use super::sample::Sample;
use super::totals::SampleTotals;
use super::writer::{DatasetDigest, DatasetEncoder, DatasetWriter};
use crate::store::{DatasetKey, DatasetRow, Store};

/// The samples of a job.
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
