//! Calibrations: known non-members are scored once, and scores of other texts get p-values against them.

mod calibrate;
mod calibration;
mod jobs;
mod load;
mod report;

pub use calibrate::calibrate;
pub use calibration::Calibration;
pub use jobs::{CalibrationKind, Calibrations};
pub use load::load;
pub use report::{CalibratedMethod, CalibrationReport};
