//! Failures shown to clients for an audit; the log has the rest.

use super::error::AuditFailure;
use crate::jobs::{FailureKind, JobFailure};

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
