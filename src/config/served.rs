//! Models that other processes run.

use super::choices::ServedKind;
use super::{rules, values};
use garde::Validate;
use serde::Deserialize;
use smart_default::SmartDefault;
use std::time::Duration;

/// How long a server may take, at most, to say what it runs.
const LONGEST_QUESTION: Duration = Duration::from_secs(30);

/// Where a model is served, and how it is asked there.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ServedSettings {
    /// What serves it; required.
    #[serde(deserialize_with = "values::some_name")]
    #[garde(required)]
    pub kind: Option<ServedKind>,
    /// The addresses of its servers, each of which has the whole model; required.
    #[garde(custom(rules::server_urls))]
    pub urls: Vec<String>,
    /// The environment variable with the key that the servers ask for; none where they ask for none.
    #[garde(inner(custom(rules::variable)))]
    pub api_key_env: Option<String>,
    /// Whether vLLM runs with the plugin in `deploy/vllm`, which adds mean and variance of the log-probability.
    pub moments: bool,
    /// How long a server may take for a batch.
    #[default(Duration::from_secs(120))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub timeout: Duration,
    /// How many batches a server runs at once; as many again wait there. More than one where a URL is that of several servers, or of
    /// one that puts batches together itself.
    #[default = 1]
    #[garde(custom(rules::within(1..=64)))]
    pub connections: usize,
    /// The token budget of a batch; none for that of the engine or, where that is `auto`, 4,096.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub max_batch_tokens: Option<usize>,
}

impl ServedSettings {
    /// How long a server may take to say what it runs.
    pub fn question_timeout(&self) -> Duration {
        self.timeout.min(LONGEST_QUESTION)
    }

    /// How long a server may take for a batch and the check before it. That of vLLM is two questions and a batch.
    pub fn longest_batch(&self) -> Duration {
        match self.kind {
            Some(ServedKind::Vllm) => self.timeout.saturating_add(self.question_timeout()).saturating_mul(2),
            _ => self.timeout,
        }
    }
}
