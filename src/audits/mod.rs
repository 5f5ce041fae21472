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

mod audit_comparison;
mod audit_difference;
mod calibrations;
mod clusters;
mod columns;
mod control_scoring;
mod decisions;
mod derived_fields;
mod error;
mod evidence;
mod findings;
#[cfg(test)]
mod fixtures;
mod forecast;
mod jobs;
mod known_non_members;
mod limits;
mod membership_tests;
mod paired_samples;
mod plan;
mod profiles;
mod recomputation;
mod report;
mod request;
mod results;
mod run;
mod run_event;
mod sample_index;
mod sample_scoring;
mod score_line;
mod scoring;
mod selected_tokens;
mod served_cost;
mod shared_text;
mod stored_scores;
mod test_recomputation;
mod text_lists;
mod token_strips;
mod tuned_splits;
mod unlearning;

pub use audit_comparison::{AuditComparison, ComparisonQuestion};
pub use audit_difference::{MethodDifference, PairedMethod, SeparationDifference};
pub use calibrations::{CalibratedMethod, Calibration, CalibrationReport, calibrate};
pub use columns::Column;
pub use error::{AuditError, AuditFailure, CalibrationMismatch};
pub use evidence::{
    CalibrationShare, CalibrationSource, CitedPlan, ControlDefault, ControlFindings, DecisionOptions, DecisionRequest,
    Design, Effect, EvidenceOptions, EvidenceRequest, LEVEL, NegativeControl, StratifyBy, Verdict, VerdictControl,
    VerdictModel, VerdictReason, VerdictState, with_default_primary,
};
pub use findings::{
    BlindFindings, Decisions, LengthFindings, MethodCalibration, SharedTextFindings, SharedTextState, SharedWork,
    SplitOutcome, WorkFindings,
};
pub use forecast::{Forecast, known_works_needed, smallest_p};
pub use jobs::{AuditKind, AuditSnapshot, AuditSubject, Audits, CalibrationKind, Calibrations, TestJob, TestSubject};
pub use limits::MAX_SAMPLES;
pub use membership_tests::{
    BeyondControl, Canary, Commitment, CutList, Inference, MAX_SHUFFLES, MethodWeight, NamedTestText, OrderTexts,
    PairedDocument, TestExclusion, TestKind, TestLayout, TestMethod, TestReport, TestRequest, TestSamples,
    TestStatistics, TestText, TestTexts, TestVerdict, UnitVerdict, commitment, commitment_fault, committed_method,
    cut_list, run_test, test_method_faults,
};
pub use plan::AuditPlan;
pub use recomputation::{RecomputationError, RecomputedReport, ScoredTexts, recompute, scores_of_report};
pub use report::{
    AuditReport, Averages, Excluded, ExpandedRequest, GroupAverage, GroupMethod, GroupReport, MeanTpr, MethodFindings,
    MethodReport, OtherModel, Provenance, SampleCounts, SeedSpread, SeedSummary, Separation, VersusBaseline,
    build_report,
};
pub use request::{AuditMetrics, AuditOptions, AuditRequest, AverageOver, ProfileOptions};
pub use results::{AuditResults, ExclusionCount, SampleScores};
pub use run::{AuditOutcome, run};
pub use run_event::{RunEvent, TuningProgress};
pub use score_line::ScoreLine;
pub use selected_tokens::{ClassTokens, SelectedToken, SelectedTokens, is_of_text_alone};
pub use served_cost::ServedForecast;
pub use stored_scores::{LoadedScores, ScoreHeader, ScoreReader, ScoredRow, StoredScores};
pub use test_recomputation::recompute_test;
pub use token_strips::{MOST_STRIPS, text_strips};
