//! Why scores cannot be compared with those of a calibration.

use mia::statistics::CalibrationError;
use thiserror::Error;

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
