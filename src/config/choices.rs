//! Settings that are one of a few names.

use serde::Deserialize;

/// Server of a model that another process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum ServedKind {
    /// Another process of this program.
    PdrAudit,
    /// vLLM.
    Vllm,
}

/// When a model is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadPolicy {
    /// At start; the service is not ready before.
    Eager,
    /// By the first request.
    Lazy,
}

/// Format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}
