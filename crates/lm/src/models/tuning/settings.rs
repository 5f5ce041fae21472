//! What is tuned, and how.

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;
use utoipa::ToSchema;

/// Everything about a tuning but the texts.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningSettings {
    pub lora: LoraSettings,
    pub optimizer: OptimizerSettings,
    /// Seed of the order of the texts, the initial values and the dropped inputs.
    pub seed: u64,
    /// What the adapter is to say it was tuned on.
    pub base: String,
    /// The commit, branch or tag of that.
    pub revision: Option<String>,
}

/// The shape of the adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LoraSettings {
    /// Rank r of every change.
    #[default(16)]
    #[schema(minimum = 1, maximum = 512)]
    pub rank: usize,
    /// Changes are scaled by `alpha / rank`.
    #[default(32.0)]
    pub alpha: f64,
    /// Share of the inputs of every change that is dropped at a step.
    #[default(0.05)]
    #[schema(minimum = 0, exclusive_maximum = 1)]
    pub dropout: f64,
    /// Modules to change, by the last parts of their names in transformers, such as `q_proj`; by default those that PEFT
    /// chooses for the family.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_modules: Option<Vec<String>>,
}

/// How the adapter is tuned: AdamW (Loshchilov and Hutter 2019) with a learning rate that rises from 0 over the warm-up steps
/// and falls back to 0 along half a cosine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, SmartDefault, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptimizerSettings {
    /// Peak learning rate.
    #[default(1e-3)]
    pub learning_rate: f64,
    /// Weight decay, decoupled from the gradient.
    #[default(5e-4)]
    pub weight_decay: f64,
    /// Decay of the mean of gradients.
    #[default(0.9)]
    pub beta1: f64,
    /// Decay of the mean of their squares.
    #[default(0.999)]
    pub beta2: f64,
    /// Added to the root of the mean of squares.
    #[default(1e-8)]
    pub epsilon: f64,
    /// Steps over which the learning rate rises.
    #[default(10)]
    pub warmup_steps: usize,
    /// Number of epochs.
    #[default(3)]
    #[schema(minimum = 1, maximum = 100)]
    pub epochs: usize,
    /// Texts of a step; those that do not fill a last one are left out of an epoch.
    #[default(8)]
    #[schema(minimum = 1, maximum = 1024)]
    pub batch_size: usize,
    /// Maximum number of tokens of a text; the rest is cut off.
    #[default(1024)]
    #[schema(minimum = 2)]
    pub max_length: usize,
    /// Norm that the gradient of a step is clipped to.
    #[default(1.0)]
    pub max_grad_norm: f64,
}
