//! The scores of an audit as they are in the store: blocks of rows, and what all rows have in common.
//!
//! Extra columns stay with the samples and are read in step with the scores, so they take no memory while an audit runs, and
//! are deleted with the samples.

use super::columns::{Column, ErrorReason};
use super::error::AuditError;
use super::results::{AuditResults, SampleScores};
use crate::datasets::{ColumnText, SampleTotals};
use crate::pool::ModelInfo;
use crate::scorer::{Overflow, TextError};
use crate::store::{DatasetKey, JobOutput, Store};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;
use uuid::Uuid;

const MAX_BLOCK_ROWS: usize = 500;
/// Maximum number of scores in a block, which is read and written as a whole: about 3 MB of text if all of them are errors.
const MAX_BLOCK_SCORES: usize = 20_000;

/// Rows are given apart where their extra columns are longer than this, in bytes of JSON.
const MAX_COLUMN_BYTES: usize = 1 << 20;

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
    /// The distance of the n-grams that the rows of a calibration keep; `None` if they keep none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ngram_step: Option<usize>,
}

/// The scores of an audit that has succeeded.
#[derive(Clone, Debug)]
pub struct StoredScores {
    pub header: Arc<ScoreHeader>,
    /// Names of the extra columns, as long as the samples are kept.
    pub columns: Vec<String>,
    /// Key of the samples, if they have extra columns.
    samples: Option<DatasetKey>,
    store: Store,
    pub audit: Uuid,
}

/// The scores of an audit, all in memory.
#[derive(Clone, Debug)]
pub struct LoadedScores {
    pub header: Arc<ScoreHeader>,
    pub rows: Vec<SampleScores>,
}

/// The scores of a sample, and its extra columns.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoredRow {
    pub scores: SampleScores,
    pub columns: ColumnText,
}

/// Reads the rows of an audit in order.
#[derive(Debug)]
pub struct ScoreReader {
    scores: StoredScores,
    /// The next block of scores, and of samples.
    next: [usize; 2],
    /// Rows of a block of scores that were not given.
    rows: VecDeque<SampleScores>,
    /// Extra columns that were read with a block of samples, and belong to later rows.
    pending: VecDeque<ColumnText>,
}

impl ScoreHeader {
    /// The columns of the request's own methods, with their places.
    pub fn listed(&self) -> impl Iterator<Item = (usize, &Column)> {
        self.columns.iter().enumerate().filter(|(_, column)| column.listed)
    }

    fn row(&self, line: &str) -> Result<SampleScores, AuditError> {
        let row: SampleScores = serde_json::from_str(line).map_err(unreadable)?;
        let fitting = row.fits(&self.columns, &self.error_reasons).then_some(row);
        fitting.ok_or_else(|| unreadable("a row that does not fit the columns"))
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
            ngram_step: results.ngram_step,
        }
    }
}

impl StoredScores {
    /// Opens the scores of an audit; returns `None` until it has succeeded.
    pub async fn open(store: &Store, audit: Uuid) -> Result<Option<Self>, AuditError> {
        let Some(header) = store.score_header(audit).await? else { return Ok(None) };
        let header = Arc::new(serde_json::from_str(&header).map_err(unreadable)?);
        let (mut columns, mut samples) = (Vec::new(), None);
        if let Some(dataset) = store.dataset_of(audit).await?.filter(|dataset| dataset.has_texts) {
            let totals: SampleTotals = serde_json::from_str(&dataset.description).map_err(unreadable)?;
            columns = totals.columns;
            samples = Some(dataset.key).filter(|_| !columns.is_empty());
        }
        Ok(Some(Self { header, columns, samples, store: store.clone(), audit }))
    }

    /// Reads a block of rows; returns `None` after the last.
    async fn block(&self, block: usize) -> Result<Option<Vec<SampleScores>>, AuditError> {
        let Some(content) = self.store.score_block(self.audit, block).await? else { return Ok(None) };
        let header = Arc::clone(&self.header);
        parsed(content, move |line| header.row(line)).await.map(Some)
    }

    /// Reads all rows.
    pub async fn load(self) -> Result<LoadedScores, AuditError> {
        let (mut rows, mut block) = (Vec::with_capacity(self.header.rows), 0);
        while let Some(more) = self.block(block).await? {
            rows.extend(more);
            block += 1;
        }
        Ok(LoadedScores { header: self.header, rows })
    }
}

impl ScoreReader {
    /// Begins with the first row.
    pub fn new(scores: StoredScores) -> Self {
        Self { scores, next: [0, 0], rows: VecDeque::new(), pending: VecDeque::new() }
    }

    /// The stored scores, with the parts common to all rows.
    pub fn scores(&self) -> &StoredScores {
        &self.scores
    }

    /// Returns the next rows: those of a block, or fewer where their extra columns are long. `None` after the last.
    pub async fn next_rows(&mut self) -> Result<Option<Vec<ScoredRow>>, AuditError> {
        if self.rows.is_empty() {
            let Some(block) = self.scores.block(self.next[0]).await? else { return Ok(None) };
            self.next[0] += 1;
            self.rows = block.into();
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while bytes < MAX_COLUMN_BYTES
            && let Some(scores) = self.rows.pop_front()
        {
            let columns = self.next_columns().await?;
            bytes += columns.bytes();
            rows.push(ScoredRow { scores, columns });
        }
        Ok(Some(rows))
    }

    /// Returns the extra columns of the next sample; none if there are none, or the samples were deleted meanwhile.
    async fn next_columns(&mut self) -> Result<ColumnText, AuditError> {
        let Some(dataset) = self.scores.samples else { return Ok(ColumnText::default()) };
        if self.pending.is_empty()
            && let Some(content) = self.scores.store.sample_block(dataset, self.next[1]).await?
        {
            self.next[1] += 1;
            self.pending = parsed(content, columns_of).await?.into();
        }
        Ok(self.pending.pop_front().unwrap_or_default())
    }
}

/// Parses the lines of a block. Megabytes of JSON are no work for the async runtime's threads.
async fn parsed<T: Send + 'static>(
    content: String,
    parse: impl Fn(&str) -> Result<T, AuditError> + Send + 'static,
) -> Result<Vec<T>, AuditError> {
    let parsed = tokio::task::spawn_blocking(move || content.lines().map(parse).collect()).await;
    parsed.map_err(|error| AuditError::Internal(error.to_string()))?
}

/// The part of a stored sample that is read with its scores.
#[derive(Deserialize)]
struct SampleColumns {
    #[serde(default)]
    columns: ColumnText,
}

fn columns_of(line: &str) -> Result<ColumnText, AuditError> {
    let sample: SampleColumns = serde_json::from_str(line)
        .map_err(|error| AuditError::Internal(format!("a sample as it is stored: {error}")))?;
    Ok(sample.columns)
}

fn unreadable(error: impl std::fmt::Display) -> AuditError {
    AuditError::Internal(format!("the scores of an audit as they are stored: {error}"))
}

/// A report and the results that it was made of, as they are stored.
pub fn output(report: &impl Serialize, results: &AuditResults) -> serde_json::Result<JobOutput> {
    let block_rows = (MAX_BLOCK_SCORES / results.columns.len().max(1)).clamp(1, MAX_BLOCK_ROWS);
    let block = |rows: &[SampleScores]| -> serde_json::Result<String> {
        let mut lines = String::new();
        for row in rows {
            lines.push_str(&serde_json::to_string(row)?);
            lines.push('\n');
        }
        Ok(lines)
    };
    Ok(JobOutput {
        report: serde_json::to_string(report)?,
        header: serde_json::to_string(&ScoreHeader::from(results))?,
        scores: results.rows.chunks(block_rows).map(block).collect::<Result<_, _>>()?,
        tokens: results.usage.tokens,
        ..JobOutput::default()
    })
}
