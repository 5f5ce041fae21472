//! Errors and failures of audits.

use super::calibration_mismatch::CalibrationMismatch;
use crate::finetunes::FinetuneError;
use crate::scorer::ScorerError;
use crate::store::StoreError;

/// Why the scores of an audit cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("internal error: {0}")]
    Internal(String),
}

impl AuditError {
    /// True if a retry may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }
}

/// Why an audit that was accepted has no report.
#[derive(Debug, thiserror::Error)]
pub enum AuditFailure {
    /// The model or the service failed.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// Scores of the model of before and of that of now do not belong in one report.
    #[error("model `{0}` changed during the audit")]
    ModelChanged(String),
    /// Its differences to the model asked about would all be 0.
    #[error(
        "the control `{control}` has the weights of `{model}`, the model that is asked about, with or without an adapter"
    )]
    ControlIsTarget { control: String, model: String },
    /// The rows or columns of results do not fit the request, so they are results of another one.
    #[error("the results do not belong to the request of the audit")]
    ForeignResults,
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model cannot be tuned on a share of the samples.
    #[error(transparent)]
    Tuning(#[from] FinetuneError),
    /// The scores cannot be compared with those of the calibration.
    #[error(transparent)]
    Calibration(#[from] CalibrationMismatch),
    /// Our own fault.
    #[error("the results cannot be written: {0}")]
    Unwritable(String),
}

impl AuditFailure {
    /// True if a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Scorer(error) => error.is_retryable(),
            Self::Store(error) => error.is_retryable(),
            Self::ModelChanged(_)
            | Self::ControlIsTarget { .. }
            | Self::ForeignResults
            | Self::Tuning(_)
            | Self::Calibration(_)
            | Self::Unwritable(_) => false,
        }
    }
}
