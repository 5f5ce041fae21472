//! The scores of an audit as they are in the store: blocks of rows, and what all rows have in common.

use super::columns::Column;
use super::error::AuditError;
use super::results::{AuditResults, SampleScores};
use super::row_error::ErrorReason;
use crate::datasets::SampleTotals;
use crate::pool::ModelInfo;
use crate::scorer::{Overflow, TextError};
use crate::store::{DatasetKey, Store};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use uuid::Uuid;

const MAX_BLOCK_ROWS: usize = 500;
/// Maximum number of scores in a block, which is read and written as a whole: about 3 MB of text if all of them are errors.
const MAX_BLOCK_SCORES: usize = 20_000;

/// Parts common to all rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreHeader {
    /// Computed columns; each row has a score or none for each.
    pub columns: Vec<Column>,
    /// The model that is asked about.
    pub model: ModelInfo,
    pub rows: usize,
    /// Why scores are missing; the errors of the rows name the places.
    #[serde(default)]
    pub error_reasons: Vec<ErrorReason>,
    /// Treatment of texts longer than the model's context; `None` in scores that an earlier version stored.
    #[serde(default)]
    pub overflow: Option<Overflow>,
    /// Everything that the bits of the scores depend on, as in the results.
    #[serde(default)]
    pub numerics: Option<String>,
    /// The digest of the samples, as datasets are named; `None` in scores that an earlier version stored.
    #[serde(default)]
    pub dataset_digest: Option<String>,
}

/// The scores of an audit that has succeeded.
#[derive(Clone, Debug)]
pub struct StoredScores {
    pub header: Arc<ScoreHeader>,
    /// Names of the extra columns, as long as the samples are kept.
    pub columns: Vec<String>,
    /// Key of the samples, if they have extra columns.
    pub(super) samples: Option<DatasetKey>,
    pub(super) store: Store,
    audit: Uuid,
}

impl ScoreHeader {
    /// The columns of the request's own methods, with their places.
    pub fn listed(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.listed)
    }

    fn row(&self, line: &str) -> Result<SampleScores, AuditError> {
        let row: SampleScores = serde_json::from_str(line).map_err(|error| unreadable(&error))?;
        let fitting = row.fits(&self.columns, &self.error_reasons).then_some(row);
        fitting.ok_or_else(|| unreadable(&"a row that does not fit the columns"))
    }

    /// The errors of a row in words, without those of baselines that the request does not list.
    pub fn errors<'a>(&'a self, row: &'a SampleScores) -> impl Iterator<Item = TextError> + 'a {
        row.errors(&self.columns, &self.error_reasons)
    }
}

impl From<&AuditResults> for ScoreHeader {
    fn from(results: &AuditResults) -> Self {
        Self {
            columns: results.columns.clone(),
            model: results.model.clone(),
            rows: results.rows.len(),
            error_reasons: results.error_reasons.clone(),
            overflow: Some(results.overflow),
            numerics: Some(results.numerics.clone()),
            dataset_digest: Some(results.dataset_digest.clone()),
        }
    }
}

impl StoredScores {
    /// Opens the scores of an audit; returns `None` until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::Store`], or [`AuditError::Internal`] where they cannot be read.
    pub async fn open(store: &Store, audit: Uuid) -> Result<Option<Self>, AuditError> {
        let Some(header) = store.score_header(audit).await? else { return Ok(None) };
        let header = Arc::new(serde_json::from_str(&header).map_err(|error| unreadable(&error))?);
        let dataset = store.dataset_of(audit).await?.filter(|dataset| dataset.has_texts);
        let totals = |description: &str| serde_json::from_str::<SampleTotals>(description);
        let columns = dataset.as_ref().map(|dataset| totals(&dataset.description)).transpose();
        let columns = columns.map_err(|error| unreadable(&error))?.map(|totals| totals.columns).unwrap_or_default();
        let samples = dataset.map(|dataset| dataset.key).filter(|_| !columns.is_empty());
        Ok(Some(Self { header, columns, samples, store: store.clone(), audit }))
    }

    /// Reads a block of rows; returns `None` after the last.
    pub async fn block(&self, block: usize) -> Result<Option<Vec<SampleScores>>, AuditError> {
        let Some(content) = self.store.score_block(self.audit, block).await? else { return Ok(None) };
        let header = Arc::clone(&self.header);
        // Megabytes of JSON are no work for the async runtime's threads.
        let parse = move || content.lines().map(|line| header.row(line)).collect::<Result<_, _>>();
        let parsed = tokio::task::spawn_blocking(parse).await;
        parsed.map_err(|error| AuditError::Internal(error.to_string()))?.map(Some)
    }
}

/// The header of results and the blocks of their rows.
///
/// # Errors
/// Where they cannot be written as JSON.
pub fn encode(results: &AuditResults) -> serde_json::Result<(String, Vec<String>)> {
    let header = ScoreHeader::from(results);
    let block_rows = (MAX_BLOCK_SCORES / results.columns.len().max(1)).clamp(1, MAX_BLOCK_ROWS);
    let block = |rows: &[SampleScores]| -> serde_json::Result<String> {
        let mut lines = String::new();
        for row in rows {
            lines.push_str(&serde_json::to_string(row)?);
            lines.push('\n');
        }
        Ok(lines)
    };
    Ok((serde_json::to_string(&header)?, results.rows.chunks(block_rows).map(block).collect::<Result<_, _>>()?))
}

fn unreadable(error: &dyn std::fmt::Display) -> AuditError {
    AuditError::Internal(format!("the scores of an audit as they are stored: {error}"))
}
