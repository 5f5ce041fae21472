//! The report of an audit, as clients read it.

use super::average::Averages;
use super::findings::MethodFindings;
use super::provenance::Provenance;
use super::seed_summary::SeedSummary;
use crate::audits::selected_tokens::SelectedTokens;
use crate::audits::tuned_splits::SplitOutcome;
use crate::datasets::SampleId;
use crate::methods::LabelledMethod;
use crate::scorer::Usage;
use crate::statistics::{PositionRow, Warning};
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use utoipa::ToSchema;

/// What an audit found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AuditReport {
    pub samples: SampleCounts,
    /// One entry per method, in the order of the request.
    pub methods: Vec<MethodReport>,
    /// Mean and deviation of methods with several seeds; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub seeds: Vec<SeedSummary>,
    /// What became of the tunings that `fsd` asked for with `split`; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub splits: Vec<SplitOutcome>,
    /// The same for each group of samples, in the order in which groups appear; absent where no sample names a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub groups: Vec<GroupReport>,
    /// Mean log-probability and entropy by position: whether the signal that positional decay amplifies is there.
    pub position_profile: Vec<PositionRow>,
    /// Positions beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub positions_left_out: usize,
    /// The tokens that `min_k` and `min_k_plus_plus` select most often, where they were asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub selected_tokens: Vec<SelectedTokens>,
    pub warnings: Vec<Warning>,
    pub usage: Usage,
    pub provenance: Provenance,
}

/// How many samples there were, and which were left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SampleCounts {
    pub total: usize,
    pub members: usize,
    pub non_members: usize,
    pub excluded: Vec<Excluded>,
}

/// A sample that a method (or, without a label, every method) could not score.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Excluded {
    /// Place among the samples, from 0.
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<SampleId>,
    /// Label of the method; absent where no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub label: Option<Arc<str>>,
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
}

/// The samples of one group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GroupReport {
    pub group: String,
    pub total: usize,
    pub members: usize,
    pub non_members: usize,
    /// One entry per method, in the order of the request.
    pub methods: Vec<GroupMethod>,
    /// As that of the whole audit, where it was asked for by group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position_profile: Option<Vec<PositionRow>>,
    /// Positions beyond those listed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schema(required = false)]
    pub positions_left_out: usize,
    pub warnings: Vec<Warning>,
}

/// What one method found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MethodReport {
    #[serde(flatten)]
    pub method: LabelledMethod,
    #[serde(flatten)]
    pub findings: MethodFindings,
    /// Means over groups, where they were asked for; absent without labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average: Option<Averages>,
}

/// What one method found in a group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct GroupMethod {
    /// That of the method among those of the whole audit.
    #[schema(value_type = String)]
    pub label: Arc<str>,
    #[serde(flatten)]
    pub findings: MethodFindings,
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}
