//! Report of an audit: a pure function of its request and its results.

mod average;
mod build;
mod cautions;
mod comparison;
mod document;
mod evidence;
mod findings;
mod provenance;
mod seed_families;
mod seed_summary;

pub use average::{Averages, GroupAverage, MeanTpr};
pub use build::build_report;
pub use cautions::cautions_of_evidence;
pub use document::{AuditReport, Excluded, GroupMethod, GroupReport, MethodReport, SampleCounts};
pub use evidence::Evidence;
pub use findings::{MethodFindings, Separation, VersusBaseline};
pub use provenance::{ExpandedRequest, OtherModel, Provenance, provenance};
pub use seed_summary::{SeedSpread, SeedSummary};
