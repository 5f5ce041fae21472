//! What an audit reports: a pure function of its request and its results.

mod build;
mod cautions;
mod comparison;
mod document;
mod findings;
mod provenance;

pub use build::build_report;
pub use document::{AuditReport, Excluded, GroupMethod, GroupReport, MethodReport, SampleCounts};
pub use findings::{MethodFindings, Separation, VersusBaseline};
pub use provenance::{ExpandedRequest, OtherModel, Provenance};
