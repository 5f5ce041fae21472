//! The statistics of an audit: how well scores separate members of the training data from non-members.
//!
//! Pure functions over plain data. Scores are only compared with each other; a higher score means that the text is more
//! likely a member. No result is ever NaN: what cannot be computed is an error or absent.

mod auroc;
mod bootstrap;
mod delong;
mod intervals;
mod operating_point;
mod profile;
mod roc;
mod warnings;

#[cfg(test)]
mod tests;

pub use auroc::auroc;
pub use bootstrap::{
    Bootstrap, BootstrapColumn, BootstrapSummary, ColumnBootstrap, PairedBootstrap, Summary, TprSummary, bootstrap,
    bootstrap_listed,
};
pub use delong::{PairedDeLong, PairedScore, delong};
pub use intervals::clopper_pearson;
pub use operating_point::{TprAtFpr, false_positive_budget};
pub use profile::{PositionMeans, PositionProfile, PositionRow, PositionRows};
pub use roc::{LabelledScore, Roc, RocPoint, StatisticsError};
pub use warnings::{AuditSample, Warning, WarningCode, method_warnings, warnings};
