//! The report of a test, as clients read it.

use super::commitment::Commitment;
use super::inference::Inference;
use super::layout::{TestKind, UnitKind};
use super::measure::{TestStatistics, UnitEffect};
use crate::audits::evidence::{ControlFindings, Design, Verdict, VerdictModel, VerdictState};
use crate::audits::findings::BlindFindings;
use crate::audits::report::Provenance;
use crate::audits::results::ExclusionCount;
use crate::datasets::SampleId;
use crate::scorer::Usage;
use mia::methods::LabelledMethod;
use mia::statistics::{Comparability, Warning};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use strum::Display;
use utoipa::ToSchema;

/// Report of a test.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TestReport)]
pub struct TestReport {
    pub kind: TestKind,
    pub samples: TestSamples,
    /// One entry per method, in the order of the request.
    pub methods: Vec<TestMethod>,
    /// Of `di`: the combination of all methods, which the verdict is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference: Option<Inference>,
    /// Of `dataset` and `di`: how far the texts alone tell suspects from held-out texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind: Option<BlindFindings>,
    /// Of `dataset` and `di`: whether the lists are alike in what can be computed without the model; absent where they are too short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comparability: Option<Comparability>,
    /// True if the private texts are those of the commitment; absent without a commitment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commitment: Option<Commitment>,
    pub verdict: TestVerdict,
    pub warnings: Vec<Warning>,
    pub usage: Usage,
    pub provenance: Provenance,
}

/// Number of texts, and those left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TestSamples)]
pub struct TestSamples {
    /// Texts to score.
    pub total: usize,
    /// Of `dataset` and `di`: clusters that hold suspects and held-out texts, which do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mixed_clusters: Option<usize>,
    /// Of the other kinds: documents, canaries or shards whose published text an earlier one has as well, which do not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<usize>,
    /// The first 1,000 texts without a score.
    pub excluded: Vec<TestExclusion>,
    /// All of them, counted by method and reason.
    pub exclusions: Vec<ExclusionCount>,
}

/// A text that a method (or, without a label, every method) could not score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TestExclusion)]
pub struct TestExclusion {
    /// JSON pointer into the request; of a shard, whichever of its orders it is. Of a dataset its place there, as in `/dataset/7`.
    pub pointer: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<SampleId>,
    /// Label of the method; absent where no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Arc<str>>,
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
}

/// Results of one method.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TestMethod)]
pub struct TestMethod {
    #[serde(flatten)]
    pub method: LabelledMethod,
    /// Clusters, documents, canaries or shards that are compared.
    pub tested: usize,
    /// Documents, canaries or shards that do not count, since one of their texts has no score; of `dataset` and `di`, texts without one.
    pub left_out: usize,
    /// That nothing was trained on, one-sided. It stands for the primary method alone; absent where there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Of the methods that are not primary: the same by Holm, for whoever picks the best of them; absent for the primary method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// Smallest possible p-value at this size; absent if there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_p_value: Option<f64>,
    #[serde(flatten)]
    pub statistics: TestStatistics,
    /// Of `dataset` and `di`: what it finds beyond the control model; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<ControlFindings>,
    /// Of the other kinds: what it finds beyond the control model; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond_control: Option<BeyondControl>,
    /// Why there is no test, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The same test of each text's score less the one that it has under the control model. Of `ref`, `wbc` and `ez`,
/// which compare with a model themselves, the test of the method.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct BeyondControl {
    /// Id of the control model.
    pub model: String,
    /// Documents, canaries or shards that are compared.
    pub tested: usize,
    /// Absent where there is nothing to compare, such as for a method that the control cannot compute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The p-value of the same test under the control alone, of `ref`, `wbc` and `ez` that of `loss`: at most 0.01 where the control tells
    /// the texts apart as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_p_value: Option<f64>,
    #[serde(flatten)]
    pub statistics: TestStatistics,
}

/// The verdict of a test.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = TestVerdict)]
pub enum TestVerdict {
    /// On two lists of texts, of `dataset` and `di`.
    Lists(Box<Verdict>),
    /// On documents, canaries or shards.
    Units(Box<UnitVerdict>),
}

/// A verdict on documents, canaries or shards. The sentence is made of the other fields alone.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestUnitVerdict)]
pub struct UnitVerdict {
    pub state: VerdictState,
    pub reason: TestReason,
    pub design: Design,
    pub kind: UnitKind,
    /// The null hypothesis.
    pub hypothesis: String,
    /// The significance level of the one-sided tests.
    pub level: f64,
    /// Label of the method that was tested.
    #[schema(value_type = String)]
    pub primary: Arc<str>,
    pub model: VerdictModel,
    /// Documents, canaries or shards that are compared.
    pub tested: usize,
    /// The p-value of the effect or, where there is a control, the larger of that and of the one beyond the control: both
    /// must be at most `level`. Absent where one of them is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The smallest p-value that this many can give; absent where there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_p_value: Option<f64>,
    /// Absent where nothing was tested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<UnitEffect>,
    /// Absent without a control model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<UnitControl>,
    /// True if the test is the one that was committed to; absent without a commitment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub committed: Option<bool>,
    /// The smallest effect that this many would show at this level with a power of 0.8: for shares of twins by the normal
    /// approximation with the variance under the null hypothesis, else by Student's distribution with the observed variance.
    /// Absent where no effect could be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub could_have_found: Option<f64>,
    /// Assumptions of the test.
    pub assumptions: Vec<String>,
    pub sentence: String,
}

/// The reason for the verdict on documents, canaries or shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
#[schema(as = TestReason)]
pub enum TestReason {
    /// The p-value is at most the level; there is no control.
    LowPValue,
    /// The p-value is above the level.
    HighPValue,
    /// So few documents, canaries or shards cannot give a p-value of at most the level.
    NoPower,
    /// A p-value is missing, of the test or beside the control: scores are missing, or canaries have more twins than an
    /// exact p-value is computed for.
    NotScored,
    /// The test is not the one that the client committed to.
    CommitmentMismatch,
    /// The p-value is at most the level, and so is that of the same test beyond the control.
    AboveControl,
    /// The p-value of the same test under the control is at most the level as well, so that the texts may be the reason.
    UnderControlAsWell,
    /// The p-value of the test beyond the control is above the level.
    NotAboveControl,
}

/// The same test beside the control model.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
#[schema(as = TestControl)]
pub struct UnitControl {
    pub model: String,
    pub digest: String,
    /// Of the test of each text's score less the one that it has under the control; absent where there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_beyond: Option<f64>,
    /// Of the test under the control alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_alone: Option<f64>,
}
