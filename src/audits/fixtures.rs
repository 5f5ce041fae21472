//! Models, methods, requests and rows for tests.

use super::evidence::EvidenceRequest;
use super::request::{AuditMetrics, AuditRequest};
use super::results::SampleScores;
use crate::datasets::{Label, Sample};
use crate::pool::ModelInfo;
use crate::scorer::Overflow;
use mia::methods::{LabelledMethod, MethodRequest, Scope, default_methods, resolve};
use serde_json::Value;

pub fn model(id: &str) -> ModelInfo {
    ModelInfo {
        id: id.to_owned(),
        digest: format!("sha256:{id}"),
        tokenizer_digest: String::new(),
        dtype: "f32".to_owned(),
        rounding: None,
        quantization: None,
        device: "cpu".to_owned(),
        commit: None,
        backend: None,
        adapter: None,
    }
}

pub fn methods(requests: Value, scope: &Scope) -> Vec<LabelledMethod> {
    let requests: Vec<MethodRequest> = serde_json::from_value(requests).unwrap();
    resolve(&requests, scope).unwrap()
}

/// An audit by the default methods.
pub fn request(metrics: AuditMetrics) -> AuditRequest {
    AuditRequest {
        model: "m".to_owned(),
        methods: default_methods(),
        overflow: Overflow::Error,
        metrics,
        evidence: EvidenceRequest::default(),
    }
}

pub fn row(text: &str, member: bool, scores: Vec<Option<f64>>) -> SampleScores {
    let label = Some(if member { Label::MEMBER } else { Label::NON_MEMBER });
    SampleScores { scores, ..SampleScores::unknown(&Sample { text: text.to_owned(), label, ..Sample::default() }, 0) }
}
