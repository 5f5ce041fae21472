//! Audits: labelled samples in, a report out of how well each method tells members of the training data from others.
//!
//! An [`AuditRequest`] is plain data: what is stored is what is run. [`run`] scores its samples and leaves
//! [`AuditResults`], which are plain data too; [`build_report`] is a pure function of the two. [`Audits`] are the audits of
//! a service, which are jobs.
//!
//! Invariants:
//!
//! - an audit is deterministic: the same request on the same model gives the same report, bit for bit, but for what the
//!   caches decide: a part of its `usage` and the warning `repeated_passes`. So running a request again is how an interrupted audit resumes: the cache of
//!   statistics answers what ran before;
//! - an error of one sample does not end the others;
//! - a model that is reloaded while an audit runs is waited for.

mod audit_difference;
mod calibrated_results;
mod calibration_mismatch;
mod calibrations;
mod cluster_ids;
mod clustered_rows;
mod columns;
mod control_scoring;
mod decisions;
mod error;
mod evidence;
mod exclusions;
mod failure;
mod job_run;
mod jobs;
mod limits;
mod membership_tests;
mod metric_checks;
mod metric_options;
mod ordered_profile;
mod paired_samples;
mod plan;
mod profiles;
mod report;
mod request;
mod result_evidence;
mod results;
mod row_error;
mod run;
mod run_event;
mod sample_index;
mod sample_scoring;
mod scored_rows;
mod scoring;
mod selected_tokens;
mod split;
mod split_outcome;
mod stored_scores;
mod subject;
mod text_lists;
mod token_selection;
mod tuned_splits;

pub use audit_difference::{MethodDifference, PairedMethod, SeparationDifference, audit_difference};
pub use calibrated_results::{Decisions, MethodCalibration};
pub use calibration_mismatch::CalibrationMismatch;
pub use calibrations::{CalibratedMethod, Calibration, CalibrationKind, CalibrationReport, Calibrations, calibrate};
pub use columns::Column;
pub use error::{AuditError, AuditFailure};
pub use evidence::{
    BlindFindings, CalibrationShare, CalibrationSource, CitedPlan, ControlFindings, DecisionOptions, DecisionRequest,
    Design, Effect, EvidenceOptions, EvidenceRequest, LengthFindings, NegativeControl, SampleFacts, StratifyBy,
    Verdict, VerdictControl, VerdictModel, VerdictReason, VerdictState, with_default_primary,
};
pub use exclusions::ExclusionCount;
pub use jobs::{AuditKind, AuditSnapshot, Audits};
pub use limits::MAX_SAMPLES;
pub use membership_tests::{
    BeyondControl, Canary, Commitment, MAX_SHUFFLES, NamedTestText, OrderTexts, PairedDocument, TestExclusion, TestJob,
    TestKind, TestLayout, TestMethod, TestOptions, TestReport, TestRequest, TestSamples, TestStatistics, TestSubject,
    TestText, TestTexts, TestVerdict, UnitVerdict, commitment, commitment_fault, run_test, test_method_faults,
};
pub use metric_options::{AverageOver, ProfileOptions};
pub use paired_samples::{LoadedScores, PairedSamples};
pub use plan::AuditPlan;
pub use report::{
    AuditReport, Averages, Excluded, ExpandedRequest, GroupAverage, GroupMethod, GroupReport, MeanTpr, MethodFindings,
    MethodReport, OtherModel, Provenance, SampleCounts, SeedSpread, SeedSummary, Separation, VersusBaseline,
    build_report,
};
pub use request::{AuditMetrics, AuditRequest};
pub use results::{AuditResults, SampleScores};
pub use run::{AuditOutcome, run};
pub use run_event::{RunEvent, TuningProgress};
pub use scored_rows::{ScoreReader, ScoredRow};
pub use selected_tokens::{ClassTokens, SelectedToken, SelectedTokens};
pub use split_outcome::SplitOutcome;
pub use stored_scores::{ScoreHeader, StoredScores};
pub use subject::AuditSubject;
pub use tuned_splits::split_faults;
