//! The scores of an audit row by row, each with the extra columns of its sample.
//!
//! Extra columns stay with the samples and are read in step with the scores, so they take no memory while an audit runs, and
//! are deleted with the samples.

use super::error::AuditError;
use super::results::SampleScores;
use super::stored_scores::StoredScores;
use crate::datasets::ExtraColumns;
use crate::store::{DatasetKey, Store};
use serde::Deserialize;
use std::collections::VecDeque;

/// The scores of a sample, and its extra columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredRow {
    pub scores: SampleScores,
    pub columns: ExtraColumns,
}

/// Reads the rows of an audit in order.
#[derive(Debug)]
pub struct ScoreReader {
    scores: StoredScores,
    block: usize,
    /// `None` if there are no extra columns.
    columns: Option<ColumnReader>,
}

/// Reads the extra columns of samples, in order.
#[derive(Debug)]
struct ColumnReader {
    store: Store,
    dataset: DatasetKey,
    block: usize,
    /// Read, and not asked for yet.
    pending: VecDeque<ExtraColumns>,
}

/// The part of a stored sample that is read here.
#[derive(Deserialize)]
struct SampleColumns {
    #[serde(default)]
    columns: ExtraColumns,
}

impl ScoreReader {
    /// Begins with the first row.
    #[must_use]
    pub fn new(scores: StoredScores) -> Self {
        let store = &scores.store;
        let reader = |dataset| ColumnReader { store: store.clone(), dataset, block: 0, pending: VecDeque::new() };
        Self { columns: scores.samples.map(reader), scores, block: 0 }
    }

    /// The stored scores, with the parts common to all rows.
    #[must_use]
    pub fn scores(&self) -> &StoredScores {
        &self.scores
    }

    /// Returns the next rows, or `None` after the last.
    pub async fn next_block(&mut self) -> Result<Option<Vec<ScoredRow>>, AuditError> {
        let Some(block) = self.scores.block(self.block).await? else { return Ok(None) };
        self.block += 1;
        let mut rows = Vec::with_capacity(block.len());
        for scores in block {
            let columns = match &mut self.columns {
                Some(columns) => columns.next_columns().await?,
                None => ExtraColumns::new(),
            };
            rows.push(ScoredRow { scores, columns });
        }
        Ok(Some(rows))
    }
}

impl ColumnReader {
    /// Returns the extra columns of the next sample; none if the samples were deleted meanwhile.
    async fn next_columns(&mut self) -> Result<ExtraColumns, AuditError> {
        if self.pending.is_empty()
            && let Some(content) = self.store.sample_block(self.dataset, self.block).await?
        {
            self.block += 1;
            let parse = move || content.lines().map(columns_of).collect::<Result<VecDeque<_>, _>>();
            let parsed = tokio::task::spawn_blocking(parse).await;
            self.pending = parsed.map_err(|error| AuditError::Internal(error.to_string()))??;
        }
        Ok(self.pending.pop_front().unwrap_or_default())
    }
}

/// Parses the extra columns of a stored sample.
fn columns_of(line: &str) -> Result<ExtraColumns, AuditError> {
    let sample: SampleColumns = serde_json::from_str(line)
        .map_err(|error| AuditError::Internal(format!("a sample as it is stored: {error}")))?;
    Ok(sample.columns)
}
