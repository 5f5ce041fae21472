//! Audits: labelled samples in, a report out of how well each method tells members of the training data from others.
//!
//! An [`AuditRequest`] is plain data: what is stored is what is run. [`run`] scores its samples and leaves
//! [`AuditResults`], which are plain data too; [`build_report`] is a pure function of the two. [`Audits`] keeps the audits of
//! a service: it queues them, runs a few at a time, and answers where each stands.
//!
//! Invariants:
//!
//! - an audit is deterministic: the same request on the same model gives the same report, bit for bit, but for what the
//!   caches decide: a part of its `usage` and the warning `repeated_passes`. So running a request again is how an interrupted audit resumes: the cache of
//!   statistics answers what ran before;
//! - an error of one sample does not end the others;
//! - a model that is reloaded while an audit runs is waited for.

mod audit_difference;
mod columns;
mod dataset_writer;
mod error;
mod failure_record;
mod limits;
mod metric_checks;
mod metric_options;
mod ordered_profile;
mod page;
mod paired_samples;
mod profiles;
mod report;
mod request;
mod results;
mod retry;
mod run;
mod runner;
mod sample;
mod sample_blocks;
mod sample_index;
mod scored_rows;
mod scoring;
mod selected_tokens;
mod status;
mod stored_scores;
mod text_digest;
mod token_selection;
mod totals;

pub use audit_difference::{MethodDifference, PairedMethod, SeparationDifference, audit_difference};
pub use columns::Column;
pub use dataset_writer::{DatasetEncoder, DatasetWriter, EncodedDataset};
pub use error::{AuditError, AuditFailure};
pub use failure_record::{FailureKind, FailureRecord};
pub use limits::MAX_SAMPLES;
pub use metric_options::{AverageOver, ProfileOptions};
pub use page::{AuditFilter, AuditPage};
pub use paired_samples::{LoadedScores, PairedSamples};
pub use report::{
    AuditReport, Averages, Excluded, ExpandedRequest, GroupAverage, GroupMethod, GroupReport, MeanTpr, MethodFindings,
    MethodReport, OtherModel, Provenance, SampleCounts, Separation, VersusBaseline, build_report,
};
pub use request::{AuditMetrics, AuditRequest};
pub use results::{AuditResults, SampleScores};
pub use run::{AuditOutcome, RunEvent, run};
pub use runner::{AuditSamples, Audits, NewAudit};
pub use sample::{ExtraColumns, Label, MAX_GROUPS, Sample, SampleId, columns_error};
pub use sample_blocks::SampleBlocks;
pub use scored_rows::{ScoreReader, ScoredRow};
pub use selected_tokens::{ClassTokens, SelectedToken, SelectedTokens};
pub use status::{AuditSnapshot, AuditSubject};
pub use stored_scores::{ScoreHeader, StoredScores};
pub use text_digest::TextDigest;
pub use totals::SampleTotals;
