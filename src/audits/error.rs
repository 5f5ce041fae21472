//! Errors and failures of audits.

use crate::finetunes::FinetuneError;
use crate::jobs::{FailureKind, JobFailure};
use crate::scorer::ScorerError;
use crate::store::StoreError;
use mia::statistics::CalibrationError;
use thiserror::Error;

/// Why the scores of an audit cannot be had.
#[derive(Debug, Error)]
pub enum AuditError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("internal error: {0}")]
    Internal(String),
}

impl AuditError {
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_retryable())
    }
}

/// Why an audit that was accepted has no report.
#[derive(Debug, Error)]
pub enum AuditFailure {
    /// The model or the service failed.
    #[error(transparent)]
    Scorer(#[from] ScorerError),
    /// Scores of the model of before and of that of now do not belong in one report.
    #[error("model `{0}` changed during the audit")]
    ModelChanged(String),
    /// Its differences to the model asked about would all be 0.
    #[error(
        "the control `{control}` has the weights of `{model}`, the model that is asked about, and so has seen what that has seen"
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
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Scorer(error) => error.is_retryable(),
            Self::Store(error) => error.is_retryable(),
            _ => false,
        }
    }
}

/// Reason why scores cannot be compared with a calibration.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CalibrationMismatch {
    #[error("the calibration is of other weights (model `{calibration}`) than model `{request}` has")]
    Model { calibration: String, request: String },
    #[error("the calibration was made under another adapter, or under none")]
    Adapter,
    #[error("the calibration was made with another `overflow`")]
    Overflow,
    #[error("the calibration has no scores of `{0}` with these parameters")]
    Method(String),
    #[error(
        "the numbers of the calibration come from another version of the program, another processor or device, or other files of a \
         model: its scores and those of now differ in their last digits; calibrate again"
    )]
    Numerics,
    #[error("the calibration `{0}` is gone")]
    Gone(String),
    #[error("the calibration has no p-values of `{label}`: {error}")]
    Scores { label: String, error: CalibrationError },
}

impl From<AuditFailure> for JobFailure {
    fn from(failure: AuditFailure) -> Self {
        match failure {
            AuditFailure::Scorer(error) => error.into(),
            AuditFailure::ModelChanged(_) => Self::told(FailureKind::ModelChanged, &failure),
            AuditFailure::Calibration(_) => Self::told(FailureKind::UnfitCalibration, &failure),
            AuditFailure::ControlIsTarget { .. } => Self::told(FailureKind::ControlIsTarget, &failure),
            AuditFailure::Store(error) => error.into(),
            AuditFailure::Tuning(error) => error.into(),
            AuditFailure::ForeignResults | AuditFailure::Unwritable(_) => {
                Self::kept_back(FailureKind::Internal, "service", &failure)
            }
        }
    }
}
