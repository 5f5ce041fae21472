//! Plans: all that decides the report of an audit, fixed before anything is scored.

use super::evidence::{EvidenceRequest, LEVEL, PERMUTATION_SEED};
use super::request::{AuditMetrics, AuditRequest};
use crate::scorer::Overflow;
use mia::methods::LabelledMethod;
use mia::texts::sha256_address;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// All that decides the report of an audit: the texts with their labels, ids, groups and documents by their digest, and the request
/// with its defaults filled in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditPlan {
    pub dataset_digest: String,
    /// Id of the model that is asked about.
    pub model: String,
    pub methods: Vec<LabelledMethod>,
    pub overflow: Overflow,
    pub metrics: AuditMetrics,
    pub evidence: EvidenceRequest,
    /// The level of every test that decides.
    pub level: f64,
    /// Seed of all permutations.
    pub permutation_seed: u64,
}

impl AuditPlan {
    /// The plan that an audit of these texts keeps to.
    pub fn new(request: &AuditRequest, dataset_digest: String) -> Self {
        let AuditRequest { model, methods, overflow, metrics, evidence } = request.clone();
        let evidence = EvidenceRequest { plan: None, control_default: None, ..evidence };
        let (level, permutation_seed) = (LEVEL, PERMUTATION_SEED);
        Self { dataset_digest, model, methods, overflow, metrics, evidence, level, permutation_seed }
    }

    /// The plan as the JSON that its id is made from: without white space, the fields in the order of this type.
    pub fn content(&self) -> serde_json::Result<String> {
        serde_json::to_string(self)
    }

    /// `sha256:` and the SHA-256 of [`Self::content`].
    pub fn id(content: &str) -> String {
        sha256_address(Sha256::new_with_prefix(content))
    }

    /// The first field in which two plans differ, for a message.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        [
            ("dataset_digest", self.dataset_digest != other.dataset_digest),
            ("model", self.model != other.model),
            ("methods", self.methods != other.methods),
            ("overflow", self.overflow != other.overflow),
            ("metrics", self.metrics != other.metrics),
            ("evidence", self.evidence != other.evidence),
            ("level", self.level != other.level),
            ("permutation_seed", self.permutation_seed != other.permutation_seed),
        ]
        .into_iter()
        .find_map(|(field, differs)| differs.then_some(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audits::evidence::CitedPlan;
    use crate::audits::fixtures;
    use mia::methods::default_methods;

    fn request(evidence: EvidenceRequest) -> AuditRequest {
        AuditRequest { evidence, ..fixtures::request(AuditMetrics::default()) }
    }

    fn plan() -> AuditPlan {
        AuditPlan::new(&request(EvidenceRequest::default()), "sha256:0".to_owned())
    }

    #[test]
    fn a_plan_is_the_same_for_the_audit_that_cites_it() {
        let plan = self::plan();
        let content = plan.content().unwrap();
        assert_eq!(serde_json::from_str::<AuditPlan>(&content).unwrap(), plan);
        let cited = CitedPlan { id: AuditPlan::id(&content), created: "now".to_owned() };
        let citing = request(EvidenceRequest { plan: Some(cited), ..EvidenceRequest::default() });
        assert_eq!(AuditPlan::new(&citing, "sha256:0".to_owned()), plan);
        assert_eq!(plan.difference(&plan), None);
    }

    #[test]
    fn whatever_decides_changes_the_id() {
        let plan = self::plan();
        let controlled = EvidenceRequest { control: Some("c".to_owned()), ..EvidenceRequest::default() };
        let others = [
            ("dataset_digest", AuditPlan { dataset_digest: "sha256:1".to_owned(), ..plan.clone() }),
            ("methods", AuditPlan { methods: default_methods()[1..].to_vec(), ..plan.clone() }),
            ("metrics", AuditPlan { metrics: AuditMetrics { roc: true, ..AuditMetrics::default() }, ..plan.clone() }),
            ("evidence", AuditPlan::new(&request(controlled), "sha256:0".to_owned())),
        ];
        for (field, other) in others {
            assert_eq!(plan.difference(&other), Some(field));
            assert_ne!(AuditPlan::id(&plan.content().unwrap()), AuditPlan::id(&other.content().unwrap()));
        }
    }
}
