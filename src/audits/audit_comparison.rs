//! Two audits compared: what clients read of it.

use super::audit_difference::{MethodDifference, audit_difference};
use super::evidence::VerdictModel;
use super::paired_samples::PairedSamples;
use super::stored_scores::LoadedScores;
use super::unlearning::Unlearning;
use crate::pool::ModelInfo;
use mia::json::by_name;
use mia::statistics::Bootstrap;
use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, VariantNames};
use utoipa::ToSchema;

/// Differences between two audits, a and b.
#[derive(Serialize, ToSchema)]
pub struct AuditComparison {
    a: ComparedAudit,
    b: ComparedAudit,
    samples: PairedCounts,
    /// The bootstrap of the intervals; each replicate draws the same samples for both audits.
    bootstrap: Bootstrap,
    /// One entry for each method that both audits have under the same label.
    methods: Vec<MethodDifference>,
    /// Whether model b treats the members as model a does, which never saw them; absent unless the question is `retain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unlearning: Option<Unlearning>,
}

/// One of two audits.
#[derive(Serialize, ToSchema)]
pub struct ComparedAudit {
    id: String,
    model: ModelInfo,
}

/// Number of samples that two audits have in common.
#[derive(Serialize, ToSchema)]
pub struct PairedCounts {
    /// Samples of the same text and label in both.
    paired: usize,
    only_a: usize,
    only_b: usize,
    /// Samples whose label is another one in the other audit; they are left out.
    label_conflicts: usize,
}

/// A question about two audits beside how they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case", try_from = "String")]
#[strum(serialize_all = "snake_case")]
pub enum ComparisonQuestion {
    /// Does the model of audit b, which was made to forget the members, treat them as the model of audit a, which never saw them?
    Retain,
}

impl TryFrom<String> for ComparisonQuestion {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        by_name(&name)
    }
}

impl AuditComparison {
    /// Compares two audits, each with its id, on the samples that both have; it is of no use once it is not `wanted` any more.
    ///
    /// # Errors
    /// If the question takes labels and a sample has none.
    pub fn new(
        [(id_a, a), (id_b, b)]: [(String, &LoadedScores); 2],
        question: Option<ComparisonQuestion>,
        wanted: &dyn Fn() -> bool,
    ) -> Result<Self, String> {
        let paired = PairedSamples::new(a, b);
        let PairedSamples { labels, clusters, methods, only_a, only_b, label_conflicts } = &paired;
        if question.is_some() && labels.iter().any(Option::is_none) {
            return Err(
                "the samples have no labels; the question `retain` compares members, the texts to forget, with \
                        non-members"
                    .to_owned(),
            );
        }
        let bootstrap = Bootstrap::default();
        let differences = audit_difference(labels, clusters, methods, Some(&bootstrap), wanted);
        let models = [a, b].map(|scores| VerdictModel::from(&scores.header.model));
        let unlearning =
            question.map(|ComparisonQuestion::Retain| Unlearning::new(models, labels, clusters, methods, &differences));
        let compared = |id, scores: &LoadedScores| ComparedAudit { id, model: scores.header.model.clone() };
        Ok(Self {
            a: compared(id_a, a),
            b: compared(id_b, b),
            samples: PairedCounts {
                paired: labels.len(),
                only_a: *only_a,
                only_b: *only_b,
                label_conflicts: *label_conflicts,
            },
            bootstrap,
            methods: differences,
            unlearning,
        })
    }
}
