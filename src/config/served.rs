//! Models that other processes run.

use super::rules;
use super::values::{self, ServedKind};
use garde::Validate;
use serde::Deserialize;
use smart_default::SmartDefault;
use std::time::Duration;

/// Maximum time for a server to report what it runs.
const LONGEST_QUESTION: Duration = Duration::from_secs(30);

/// Where a model is served, and how it is asked there.
#[derive(Debug, Clone, PartialEq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ServedSettings {
    /// Kind of its servers; required.
    #[serde(deserialize_with = "values::some_name")]
    #[garde(required)]
    pub kind: Option<ServedKind>,
    /// URLs of its servers; each has the whole model. Required.
    #[garde(custom(rules::server_urls))]
    pub urls: Vec<String>,
    /// Environment variable with the key that the servers ask for; `None` if they ask for none.
    #[garde(inner(custom(rules::variable)))]
    pub api_key_env: Option<String>,
    /// True if vLLM runs with the plugin in `deploy/vllm`, which adds mean and variance of the log-probability.
    pub moments: bool,
    /// False if servers of the kind `openai` give the log-probabilities of the prompt's tokens alone, without those of the most
    /// probable tokens.
    #[default = true]
    pub top_logprobs: bool,
    /// Maximum number of tokens of a text, where the servers do not report it.
    #[garde(inner(custom(rules::at_least(2))))]
    pub context: Option<usize>,
    /// Price of a million tokens of a prompt, in any currency; costs are forecast with it.
    #[garde(inner(custom(rules::price)))]
    pub price_per_million_tokens: Option<f64>,
    /// Timeout of a batch on a server.
    #[default(Duration::from_secs(120))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub timeout: Duration,
    /// Number of batches that a server runs at once; as many again wait there. More than one if a URL is that of several servers,
    /// or of one that puts batches together itself.
    #[default = 1]
    #[garde(custom(rules::within(1..=64)))]
    pub connections: usize,
    /// The token budget of a batch; `None` for that of the engine or, where that is `auto`, 4,096.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub max_batch_tokens: Option<usize>,
}

impl ServedSettings {
    /// Returns the timeout for a server to report what it runs.
    pub fn question_timeout(&self) -> Duration {
        self.timeout.min(LONGEST_QUESTION)
    }

    /// Returns the maximum time of a batch and the check before it, which is two questions and a batch for a server whose answers
    /// do not name their model.
    pub fn longest_batch(&self) -> Duration {
        match self.kind {
            Some(ServedKind::Vllm | ServedKind::Sglang | ServedKind::Openai) => {
                self.timeout.saturating_add(self.question_timeout()).saturating_mul(2)
            }
            Some(ServedKind::PdrAudit) | None => self.timeout,
        }
    }
}
