//! An audit as it is asked for, stored and run.

use super::evidence::{EvidenceOptions, EvidenceRequest};
use super::selected_tokens::token_selections;
use crate::datasets::SampleTotals;
use crate::scorer::{Overflow, Plan};
use mia::json::object_or_null;
use mia::methods::{AuxiliaryPass, Fault, LabelledMethod, Method, Scope, auxiliary_passes};
use mia::statistics::Bootstrap;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

pub const MOST_POSITIONS: usize = 4096;
pub const MOST_GROUP_POSITIONS: usize = 1024;
/// Maximum number of false-positive rates in a request.
const MAX_FPR_TARGETS: usize = 32;
/// Maximum number of tokens listed for a class.
const MOST_TOKENS: usize = 1000;
/// Maximum number of distinct token selections: each counts the tokens of the vocabulary by class.
const MOST_SELECTIONS: usize = 16;
/// Memory of a position of a profile, counted in scores.
const SCORES_OF_A_POSITION: usize = 8;
/// Memory of a listed token, counted in scores.
const SCORES_OF_A_TOKEN: usize = 4;

/// Request of an audit, as plain data: methods are resolved, and models are named by id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRequest {
    /// Id of the model whose training data is asked about.
    pub model: String,
    /// Methods to compute, with every parameter.
    pub methods: Vec<LabelledMethod>,
    /// Treatment of a text that is longer than the model's context.
    pub overflow: Overflow,
    /// Statistics to report.
    pub metrics: AuditMetrics,
    /// Basis of the verdict.
    #[serde(default)]
    pub evidence: EvidenceRequest,
}

impl AuditRequest {
    /// Maximum number of forward passes over a text, by the model that is asked about and by the control. Neighbours that come with
    /// the texts count as one pass, as none of them is known here.
    pub fn passes(&self) -> u64 {
        let auxiliary = auxiliary_passes(&self.methods).into_iter().map(|pass| match pass {
            AuxiliaryPass::Neighbors(Some(generator)) => generator.count as u64,
            AuxiliaryPass::Swapped(swaps) => swaps.copies as u64,
            _ => 1,
        });
        let models = if self.evidence.control.is_some() { 2 } else { 1 };
        auxiliary.fold(1_u64, u64::saturating_add).saturating_mul(models)
    }

    /// The faults of a request that was not made here, with pointers into it. `grouped` is true if any sample names a group.
    pub fn faults(&self, grouped: bool) -> Vec<Fault> {
        let below = |Fault { pointer, detail }| Fault { pointer: format!("/metrics{pointer}"), detail };
        let metrics = self.metrics.faults(&self.methods, grouped).into_iter().map(below);
        metrics.chain(self.evidence.faults()).collect()
    }

    /// The method that the verdict is about.
    pub fn primary(&self) -> Option<&Method> {
        let label = self.evidence.primary.as_ref()?;
        self.methods.iter().find(|method| method.label == *label).map(|method| &method.method)
    }
}

/// Request of an audit as clients make it, once its methods are resolved.
#[derive(Debug)]
pub struct AuditOptions {
    /// Id of the model whose training data is asked about.
    pub model: String,
    pub methods: Vec<LabelledMethod>,
    pub overflow: Overflow,
    pub metrics: AuditMetrics,
    pub evidence: EvidenceOptions,
}

impl AuditOptions {
    /// Resolves the options for samples of these totals. Faults have pointers into the request.
    pub fn settle(self, scope: &Scope, totals: &SampleTotals) -> Result<AuditRequest, Vec<Fault>> {
        let Self { model, methods, overflow, metrics, evidence } = self;
        let below =
            |list: &'static str| move |Fault { pointer, detail }| Fault { pointer: format!("{list}{pointer}"), detail };
        let split_faults = split_faults(&methods, totals).into_iter().map(below("/methods"));
        let metric_faults = metrics.faults(&methods, totals.grouped > 0).into_iter().map(below("/metrics"));
        let mut faults: Vec<Fault> = split_faults.chain(metric_faults).collect();
        match evidence.settle(&methods, scope, totals) {
            Ok(evidence) if faults.is_empty() => Ok(AuditRequest { model, methods, overflow, metrics, evidence }),
            settled => {
                faults.extend(settled.err().unwrap_or_default());
                Err(faults)
            }
        }
    }
}

/// The faults of methods that tune on a share of the samples if these have no labels, with pointers relative to the methods.
fn split_faults(methods: &[LabelledMethod], totals: &SampleTotals) -> Vec<Fault> {
    let unlabelled =
        "the samples are without labels, so none is known to be a non-member that the model can be tuned on";
    let detail = match totals.in_part_fault("the tuning of `fsd` with `split`") {
        Some(fault) => fault,
        None if !totals.are_labelled() => unlabelled.to_owned(),
        None => return Vec::new(),
    };
    let tuning = methods.iter().filter(|method| method.method.split().is_some());
    let mut faults: Vec<Fault> = tuning.map(|method| Fault::new(method.pointer("split"), detail.clone())).collect();
    // A list of seeds has the same fault for each.
    faults.dedup_by(|a, b| a.pointer == b.pointer);
    faults
}

/// Statistics to report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = Metrics)]
pub struct AuditMetrics {
    /// False-positive rates at which to report the true-positive rate, each in [0, 1].
    pub fpr_targets: Vec<f64>,
    /// If true, the points of the ROC curve are listed.
    pub roc: bool,
    /// Bootstrap of the samples; null for none.
    #[serde(deserialize_with = "object_or_null")]
    pub bootstrap: Option<Bootstrap>,
    /// Over what each method's numbers are averaged: `["group"]` gives the unweighted means over the groups.
    #[schema(max_items = 1)]
    pub average: Vec<AverageOver>,
    /// Texts and positions of the position profile.
    #[serde(deserialize_with = "profile_options")]
    #[schema(value_type = Option<ProfileOptions>)]
    pub position_profile: ProfileOptions,
    /// Number of tokens to list, by class, of those that `min_k` and `min_k_plus_plus` select most often; null for none.
    #[schema(minimum = 1, maximum = 1000)]
    pub selected_tokens: Option<usize>,
}

impl From<&AuditRequest> for Plan {
    fn from(request: &AuditRequest) -> Self {
        Self {
            model: request.model.clone(),
            methods: request.methods.as_slice().into(),
            overflow: request.overflow,
            tokens: false,
            splits: Arc::new([]),
        }
    }
}

impl Default for AuditMetrics {
    fn default() -> Self {
        Self {
            fpr_targets: vec![0.005, 0.01, 0.05],
            roc: false,
            bootstrap: Some(Bootstrap::default()),
            average: Vec::new(),
            position_profile: ProfileOptions::default(),
            selected_tokens: None,
        }
    }
}

/// Over what the numbers of a method are averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum AverageOver {
    /// The groups that the samples name.
    Group,
}

/// Texts and positions of the position profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ProfileOptions {
    /// If true, each group has a profile as well.
    pub by_group: bool,
    /// Last position, from 1. Only texts with at least this many scored tokens count, so that every position is a mean over the
    /// same texts. Null for every position, each over the texts that reach it.
    #[schema(minimum = 1, maximum = 4096)]
    pub positions: Option<usize>,
}

/// Reads [`ProfileOptions`] as an object; null is the default.
fn profile_options<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ProfileOptions, D::Error> {
    object_or_null(deserializer).map(Option::unwrap_or_default)
}

impl AuditMetrics {
    /// Returns the faults, with pointers relative to the metrics. `methods` are those of the request, and `grouped` is true if
    /// any sample names a group.
    fn faults(&self, methods: &[LabelledMethod], grouped: bool) -> Vec<Fault> {
        let bootstrap = self.bootstrap.iter().flat_map(Bootstrap::faults);
        let mut faults: Vec<Fault> =
            bootstrap.map(|(field, detail)| Fault::new(format!("/bootstrap/{field}"), detail)).collect();
        let count = self.fpr_targets.len();
        if !(1..=MAX_FPR_TARGETS).contains(&count) {
            let detail = format!("there are {count} false-positive rates; there must be 1 to {MAX_FPR_TARGETS}");
            faults.push(Fault::new("/fpr_targets", detail));
        } else {
            let outside = self.fpr_targets.iter().enumerate().filter(|(_, target)| !(0.0..=1.0).contains(*target));
            faults.extend(outside.map(|(index, target)| {
                Fault::new(format!("/fpr_targets/{index}"), format!("the rate is {target:?}, outside [0, 1]"))
            }));
        }
        if self.average.len() > 1 {
            let detail = format!("`group` is listed {} times", self.average.len());
            faults.push(Fault::new("/average", detail));
        }
        for (pointer, given) in
            [("/average", !self.average.is_empty()), ("/position_profile/by_group", self.position_profile.by_group)]
        {
            if given && !grouped {
                faults.push(Fault::new(pointer, "no sample names a `group`"));
            }
        }
        if let Some(positions) = self.position_profile.positions.filter(|count| !(1..=MOST_POSITIONS).contains(count)) {
            let detail = format!("positions is {positions}, outside 1 to {MOST_POSITIONS}");
            faults.push(Fault::new("/position_profile/positions", detail));
        }
        let detail = self.selected_tokens.and_then(|count| tokens_fault(count, methods));
        faults.extend(detail.map(|detail| Fault::new("/selected_tokens", detail)));
        faults
    }

    /// Maximum memory that these options take in a report on `groups` groups, counted in scores.
    pub fn option_cost(&self, groups: usize) -> usize {
        let ProfileOptions { by_group, positions } = self.position_profile;
        let positions = positions.unwrap_or(MOST_GROUP_POSITIONS).min(MOST_GROUP_POSITIONS);
        let of_profiles = if by_group { groups.saturating_mul(positions * SCORES_OF_A_POSITION) } else { 0 };
        let of_tokens = self.selected_tokens.unwrap_or(0).min(MOST_TOKENS) * 2 * MOST_SELECTIONS * SCORES_OF_A_TOKEN;
        of_profiles.saturating_add(of_tokens)
    }
}

fn tokens_fault(count: usize, methods: &[LabelledMethod]) -> Option<String> {
    if !(1..=MOST_TOKENS).contains(&count) {
        return Some(format!("selected_tokens is {count}, outside 1 to {MOST_TOKENS}"));
    }
    // If the methods themselves have faults, there are none to check.
    match token_selections(methods).len() {
        0 if !methods.is_empty() => Some("no method of the request is `min_k` or `min_k_plus_plus`".to_owned()),
        number if number > MOST_SELECTIONS => Some(format!(
            "`min_k` and `min_k_plus_plus` select tokens in {number} different ways; the limit is {MOST_SELECTIONS}"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::fixtures::methods;
    use mia::methods::{Scope, default_methods};
    use serde_json::{Value, json};

    fn metrics(options: Value) -> AuditMetrics {
        serde_json::from_value(options).expect("metrics")
    }

    #[test]
    fn by_default_nothing_is_added() {
        let metrics = metrics(json!({ "position_profile": null }));
        assert_eq!(metrics, AuditMetrics::default());
        assert_eq!((metrics.faults(&default_methods(), false), metrics.option_cost(9)), (Vec::new(), 0));
    }

    #[test]
    fn faults_have_pointers_and_name_what_is_allowed() {
        let grid: Vec<f64> = (1..=17).map(|k| f64::from(k) / 20.0).collect();
        for (options, requests, pointer, words) in [
            (json!({ "average": ["group"] }), json!(["loss"]), "/average", "no sample names a `group`"),
            (
                json!({ "position_profile": { "by_group": true } }),
                json!(["loss"]),
                "/position_profile/by_group",
                "no sample names",
            ),
            (
                json!({ "position_profile": { "positions": 0 } }),
                json!(["loss"]),
                "/position_profile/positions",
                "outside 1 to 4096",
            ),
            (json!({ "selected_tokens": 0 }), json!(["min_k"]), "/selected_tokens", "outside 1 to 1000"),
            (json!({ "selected_tokens": 5 }), json!(["loss", "max_k"]), "/selected_tokens", "`min_k_plus_plus`"),
            (
                json!({ "selected_tokens": 5 }),
                json!([{ "name": "min_k", "k": grid }]),
                "/selected_tokens",
                "17 different ways; the limit is 16",
            ),
        ] {
            let faults = metrics(options).faults(&methods(requests, &Scope::default()), false);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].pointer == pointer && faults[0].detail.contains(words), "{faults:?}");
        }
        let twice = metrics(json!({ "average": ["group", "group"] })).faults(&[], true);
        assert_eq!(twice[0].detail, "`group` is listed 2 times");
        for bad in [json!({ "average": ["model"] }), json!({ "position_profile": [true] })] {
            assert!(serde_json::from_value::<AuditMetrics>(bad).is_err());
        }
    }

    #[test]
    fn what_is_listed_counts_in_the_cost() {
        let both = metrics(json!({ "selected_tokens": 10, "position_profile": { "by_group": true } }));
        assert_eq!(both.option_cost(3), 10 * 2 * 16 * 4 + 3 * 1024 * 8);
        let fewer = metrics(json!({ "position_profile": { "by_group": true, "positions": 16 } }));
        assert_eq!(fewer.option_cost(3), 3 * 16 * 8);
    }
}
