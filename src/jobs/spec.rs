//! What an audit is asked to do.

use crate::scorer::Plan;
use crate::statistics::Bootstrap;
use crate::wire::object_or_null;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;

/// One labelled (or unlabelled) text.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    pub id: Option<String>,
    pub text: String,
    /// Whether the text is known to be a member of the training data. Present in all samples of an audit or in none.
    pub member: Option<bool>,
    /// What it is counted with, beside being counted with all.
    pub group: Option<String>,
    /// Texts that differ little from it, for the method `neighbor`.
    pub neighbors: Option<Vec<String>>,
}

/// Which statistics to report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Metrics {
    /// False-positive rates at which to report the true-positive rate, each in [0, 1].
    pub fpr_targets: Vec<f64>,
    /// Whether to list the points of the ROC curve.
    pub roc: bool,
    /// How to draw the samples anew, so that it shows how the numbers vary; null for not at all.
    #[serde(deserialize_with = "object_or_null")]
    pub bootstrap: Option<Bootstrap>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self { fpr_targets: vec![0.005, 0.01, 0.05], roc: false, bootstrap: Some(Bootstrap::default()) }
    }
}

/// A whole audit.
#[derive(Clone)]
pub struct AuditSpec {
    pub plan: Plan,
    pub samples: Vec<Sample>,
    pub metrics: Metrics,
}

/// The most groups of an audit.
pub const MAX_GROUPS: usize = 256;

impl AuditSpec {
    /// What is wrong with samples as a whole, in words.
    pub fn fault_of(samples: &[Sample]) -> Option<String> {
        let total = samples.len();
        if total == 0 {
            return Some("the list of samples is empty: it takes at least one".to_owned());
        }
        let labelled = samples.iter().filter(|sample| sample.member.is_some()).count();
        let members = samples.iter().filter(|sample| sample.member == Some(true)).count();
        let non_members = labelled - members;
        if (1..total).contains(&labelled) {
            let first = samples.iter().position(|sample| sample.member.is_none()).unwrap_or_default();
            return Some(format!(
                "{labelled} of {total} samples have a label, and sample {first} (from 0) has none: all must have one, or none"
            ));
        }
        if labelled > 0 && (members == 0 || non_members == 0) {
            return Some(format!(
                "there are {members} members and {non_members} non-members; an audit takes both, or no labels"
            ));
        }
        let groups: HashSet<&str> = samples.iter().filter_map(|sample| sample.group.as_deref()).collect();
        let groups = groups.len();
        (groups > MAX_GROUPS).then(|| format!("there are {groups} groups; an audit takes at most {MAX_GROUPS}"))
    }
}
