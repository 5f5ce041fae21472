//! Conversions of the errors of jobs, datasets and the store into problems.

use super::problem::{Kind, PointedFault, Problem};
use crate::audits::{AuditError, CalibrationMismatch};
use crate::datasets::DatasetError;
use crate::finetunes::RemoveError;
use crate::jobs::{FailureKind, FailureRecord, JobError};
use crate::store::StoreError;

impl From<AuditError> for Problem {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Store(error) => error.into(),
            AuditError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<CalibrationMismatch> for Problem {
    fn from(mismatch: CalibrationMismatch) -> Self {
        Self::new(Kind::Conflict, mismatch.to_string())
    }
}

impl From<JobError> for Problem {
    fn from(error: JobError) -> Self {
        let kind = match error {
            JobError::NotFound(_) => Kind::NotFound,
            JobError::Finished(_) | JobError::Unfinished(_) | JobError::NameTaken { .. } => Kind::Conflict,
            JobError::Full(..) | JobError::Draining => Kind::Unavailable,
            JobError::OwnerFull(..) => Kind::QuotaExceeded,
            JobError::TooLarge(_) => Kind::TooLarge,
            JobError::KeyReused => Kind::Invalid,
            JobError::Dataset(error) => return error.into(),
            JobError::Store(error) => return error.into(),
            JobError::Internal(cause) => return Self::internal(cause),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Adapter(error) => error.into(),
            RemoveError::Store(error) => error.into(),
        }
    }
}

impl From<DatasetError> for Problem {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Unknown => Self::new(Kind::NotFound, error.to_string()),
            DatasetError::InUse | DatasetError::TextsGone => Self::new(Kind::Conflict, error.to_string()),
            DatasetError::Store(error) => error.into(),
            DatasetError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::new(Kind::Unavailable, error.to_string()),
            error if error.is_retryable() => Self::failed("store", &error.to_string()),
            error => Self::internal(error),
        }
    }
}

impl From<&FailureRecord> for Problem {
    fn from(failure: &FailureRecord) -> Self {
        let kind = match failure.kind {
            FailureKind::UnknownModel => Kind::UnknownModel,
            FailureKind::WrongModel => return Self::fault("/model", &*failure.detail),
            // Which part of the request that is depends on the kind of job.
            FailureKind::UnfitTexts | FailureKind::UnfitSettings | FailureKind::NotFinite => {
                return Self::fault("", &*failure.detail);
            }
            FailureKind::ControlIsTarget => return Self::fault("/control", &*failure.detail),
            FailureKind::UnfitMethods => {
                let faults: Vec<PointedFault> = failure.faults.iter().cloned().map(PointedFault::from).collect();
                let total = faults.len();
                return Self::invalid(faults, total);
            }
            FailureKind::ModelFailed
            | FailureKind::DeviceFailed
            | FailureKind::Unavailable
            | FailureKind::StoreFull
            | FailureKind::StoreFailed => Kind::Unavailable,
            FailureKind::ModelChanged | FailureKind::DatasetGone | FailureKind::UnfitCalibration => Kind::Conflict,
            FailureKind::TooLarge => Kind::TooLarge,
            FailureKind::DeadlineExceeded => Kind::DeadlineExceeded,
            FailureKind::Abandoned | FailureKind::Internal => Kind::Internal,
        };
        Self::new(kind, &*failure.detail)
    }
}
