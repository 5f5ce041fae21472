//! Report of a fine-tune.

use lm::models::tuning::StepReport;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Report of a fine-tune.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinetuneReport {
    /// The id of the model under the adapter, `<model>:<adapter>`.
    #[schema(examples("demo:unseen"))]
    pub adapter: String,
    /// SHA-256 over the adapter's settings and tensors.
    pub digest: String,
    /// SHA-256 over configuration and weights of the model that was tuned.
    pub base_digest: String,
    /// Tokens that ran, in all steps together.
    pub tokens: usize,
    /// Result of every step.
    pub steps: Vec<FinetuneStep>,
}

/// Result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FinetuneStep {
    /// Counted from 1.
    pub step: usize,
    /// Mean cross-entropy of the scored tokens in nats, before the step.
    pub loss: f64,
    pub learning_rate: f64,
    /// Norm of the gradient before it was clipped.
    pub gradient_norm: f64,
}

impl From<&StepReport> for FinetuneStep {
    fn from(report: &StepReport) -> Self {
        let StepReport { step, loss, learning_rate, gradient_norm, .. } = *report;
        Self { step, loss, learning_rate, gradient_norm }
    }
}
