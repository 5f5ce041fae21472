//! The report of a test, as clients read it.

use super::commitment::Commitment;
use super::kind::TestKind;
use super::measure::TestStatistics;
use super::verdict::TestVerdict;
use crate::audits::evidence::{BlindFindings, ControlFindings};
use crate::audits::exclusions::ExclusionCount;
use crate::audits::report::Provenance;
use crate::datasets::SampleId;
use crate::scorer::Usage;
use mia::methods::LabelledMethod;
use mia::statistics::{Comparability, Warning};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// Report of a test.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TestReport)]
pub struct TestReport {
    pub kind: TestKind,
    pub samples: TestSamples,
    /// One entry per method, in the order of the request.
    pub methods: Vec<TestMethod>,
    /// Of `dataset`: how far the texts alone tell suspects from held-out texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blind: Option<BlindFindings>,
    /// Of `dataset`: whether the lists are alike in what can be computed without the model; absent where they are too short.
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
    /// Of `dataset`: clusters that hold suspects and held-out texts, which do not count.
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
    /// Documents, canaries or shards that do not count, since one of their texts has no score; of `dataset`, texts without one.
    pub left_out: usize,
    /// That nothing was trained on, one-sided. It stands for the primary method alone; absent where there is nothing to compare.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// Of the other methods: the same by Holm, for whoever picks the best of them; absent for the primary method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_value_adjusted: Option<f64>,
    /// Smallest possible p-value at this size; absent if there is no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smallest_p_value: Option<f64>,
    #[serde(flatten)]
    pub statistics: TestStatistics,
    /// Of `dataset`: what it finds beyond the control model; absent without one.
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
