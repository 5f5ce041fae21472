//! The scores of an audit as they are in the store: blocks of rows, and what all rows have in common.

use super::columns::Column;
use super::error::AuditError;
use super::results::{AuditResults, SampleScores};
use crate::datasets::SampleTotals;
use crate::pool::ModelInfo;
use crate::scorer::Overflow;
use crate::store::{DatasetKey, Store};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Rows of a block.
const BLOCK_ROWS: usize = 500;

/// What all rows have in common.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScoreHeader {
    /// What was computed; each row has a score or none for each.
    pub columns: Vec<Column>,
    /// The model that is asked about.
    pub model: ModelInfo,
    /// How many rows there are.
    pub rows: usize,
    /// What was done with texts that are longer than the model's context; none in scores that an earlier version stored.
    #[serde(default)]
    pub overflow: Option<Overflow>,
    /// What the bits of the scores depend on, as in the results.
    #[serde(default)]
    pub numerics: Option<String>,
}

/// The scores of an audit that has succeeded.
#[derive(Clone, Debug)]
pub struct StoredScores {
    pub header: ScoreHeader,
    /// The names of what came along with the samples, as long as these are there.
    pub columns: Vec<String>,
    /// Where the samples are, if anything came along with them.
    pub(super) samples: Option<DatasetKey>,
    pub(super) store: Store,
    audit: Uuid,
}

impl ScoreHeader {
    /// The columns of the request's own methods, with their places.
    pub fn listed(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.listed)
    }
}

impl From<&AuditResults> for ScoreHeader {
    fn from(results: &AuditResults) -> Self {
        Self {
            columns: results.columns.clone(),
            model: results.model.clone(),
            rows: results.rows.len(),
            overflow: Some(results.overflow),
            numerics: Some(results.numerics.clone()),
        }
    }
}

impl StoredScores {
    /// The scores of an audit; none until it has succeeded.
    ///
    /// # Errors
    /// [`AuditError::Store`], or [`AuditError::Internal`] where they cannot be read.
    pub async fn open(store: &Store, audit: Uuid) -> Result<Option<Self>, AuditError> {
        let Some(header) = store.score_header(audit).await? else { return Ok(None) };
        let header = serde_json::from_str(&header).map_err(|error| unreadable(&error))?;
        let dataset = store.dataset_of(audit).await?.filter(|dataset| dataset.has_texts);
        let totals = |description: &str| serde_json::from_str::<SampleTotals>(description);
        let columns = dataset.as_ref().map(|dataset| totals(&dataset.description)).transpose();
        let columns = columns.map_err(|error| unreadable(&error))?.map(|totals| totals.columns).unwrap_or_default();
        let samples = dataset.map(|dataset| dataset.key).filter(|_| !columns.is_empty());
        Ok(Some(Self { header, columns, samples, store: store.clone(), audit }))
    }

    /// One block of rows; none after the last.
    ///
    /// # Errors
    /// As [`StoredScores::open`].
    pub async fn block(&self, block: usize) -> Result<Option<Vec<SampleScores>>, AuditError> {
        let Some(content) = self.store.score_block(self.audit, block).await? else { return Ok(None) };
        let rows = content.lines().map(|line| serde_json::from_str(line).map_err(|error| unreadable(&error)));
        rows.collect::<Result<_, _>>().map(Some)
    }
}

/// The header of results and the blocks of their rows.
///
/// # Errors
/// Where they cannot be written as JSON.
pub fn encode(results: &AuditResults) -> serde_json::Result<(String, Vec<String>)> {
    let header = ScoreHeader::from(results);
    let rows = &results.rows;
    let block = |rows: &[SampleScores]| -> serde_json::Result<String> {
        let mut lines = String::new();
        for row in rows {
            lines.push_str(&serde_json::to_string(row)?);
            lines.push('\n');
        }
        Ok(lines)
    };
    Ok((serde_json::to_string(&header)?, rows.chunks(BLOCK_ROWS).map(block).collect::<Result<_, _>>()?))
}

fn unreadable(error: &serde_json::Error) -> AuditError {
    AuditError::Internal(format!("the scores of an audit as they are stored: {error}"))
}
