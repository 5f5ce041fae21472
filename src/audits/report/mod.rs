//! What an audit reports: a pure function of its request and its results.

mod average;
mod build;
mod cautions;
mod comparison;
mod document;
mod findings;
mod provenance;
mod seed_families;
mod seed_summary;

pub use average::{Averages, GroupAverage, MeanTpr};
pub use build::build_report;
pub use document::{AuditReport, Excluded, GroupMethod, GroupReport, MethodReport, SampleCounts};
pub use findings::{MethodFindings, Separation, VersusBaseline};
pub use provenance::{ExpandedRequest, OtherModel, Provenance};
pub use seed_summary::{SeedSpread, SeedSummary};
