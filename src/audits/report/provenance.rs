//! Where the numbers of a report come from.

use crate::audits::evidence::{
    CalibrationSource, CitedPlan, ControlDefault, DecisionRequest, EvidenceRequest, StratifyBy,
};
use crate::audits::request::{AuditMetrics, AuditRequest};
use crate::audits::results::AuditResults;
use crate::pool::ModelInfo;
use crate::scorer::Overflow;
use crate::served::BackendInfo;
use lm::models::precision::Rounding;
use mia::methods::LabelledMethod;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::ToSchema;

/// Provenance: all that is needed to repeat the computation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Provenance {
    pub model: String,
    pub model_digest: String,
    pub tokenizer_digest: String,
    pub dtype: String,
    /// Possible deviation of its numbers from those in f32, by checkpoints that were tested on the CPU; absent if they are f32's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,
    /// What its weights are quantised to, as in `Q4_K_M`; absent if they are not quantised.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("Q4_K_M"))]
    pub quantization: Option<String>,
    pub device: String,
    /// The commit of a model from the Hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Server that runs it, if it is served elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendInfo>,
    /// SHA-256 over the files of the LoRA adapter that the model was under, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_digest: Option<String>,
    /// The other models that took part: reference models and those that made neighbours.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub other_models: Vec<OtherModel>,
    /// The control model, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<OtherModel>,
    pub program_version: String,
    /// All that the bits of the scores depend on beside the request: the code of the numbers and each model as it ran, separated by
    /// "; ". Scores of the same samples under the same numerics are equal bit for bit.
    #[serde(default)]
    #[schema(required = true)]
    pub numerics: String,
    /// SHA-256 over the samples as lines of JSON, each with its id, text, label, group, document and whatever else came with it: the
    /// id that the samples have as a dataset.
    pub dataset_digest: String,
    /// The same of the calibration's samples, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration_digest: Option<String>,
    /// The request with its defaults filled in.
    pub request: ExpandedRequest,
}

/// A model that took part beside the one asked about.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct OtherModel {
    pub model: String,
    pub model_digest: String,
    pub tokenizer_digest: String,
    pub dtype: String,
    /// Possible deviation of its numbers from those in f32, by checkpoints that were tested on the CPU; absent if they are f32's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounding: Option<Rounding>,
    /// What its weights are quantised to, as in `Q4_K_M`; absent if they are not quantised.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("Q4_K_M"))]
    pub quantization: Option<String>,
    /// Server that runs it, if it is served elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backend: Option<BackendInfo>,
    /// SHA-256 over the files of the LoRA adapter that it was under, where there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adapter_digest: Option<String>,
}

/// The request of an audit with its defaults filled in, without the samples.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExpandedRequest {
    pub methods: Vec<LabelledMethod>,
    pub overflow: Overflow,
    pub metrics: AuditMetrics,
    /// Label of the method that the verdict is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub primary: Option<Arc<str>>,
    /// Id of the control model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control: Option<String>,
    /// The reason for the control where none was asked for; absent where one was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub control_default: Option<ControlDefault>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stratify: Option<StratifyBy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prior: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<CalibrationSource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionRequest>,
}

pub fn provenance(request: &AuditRequest, results: &AuditResults) -> Provenance {
    let AuditResults { model, other_models, control, .. } = results;
    let ModelInfo { id, digest, tokenizer_digest, dtype, rounding, quantization, device, commit, backend, adapter } =
        model.clone();
    Provenance {
        model: id,
        model_digest: digest,
        tokenizer_digest,
        dtype,
        rounding,
        quantization,
        device,
        commit,
        backend,
        adapter_digest: adapter,
        other_models: other_models.iter().map(OtherModel::from).collect(),
        control: control.as_ref().map(OtherModel::from),
        program_version: env!("CARGO_PKG_VERSION").into(),
        numerics: results.numerics.clone(),
        dataset_digest: results.dataset_digest.clone(),
        calibration_digest: results.calibration.as_ref().and_then(|calibration| calibration.digest.clone()),
        request: ExpandedRequest {
            methods: results.listed().map(|(_, column)| column.method.clone()).collect(),
            overflow: request.overflow,
            metrics: request.metrics.clone(),
            primary: request.evidence.primary.clone(),
            control: request.evidence.control.clone(),
            control_default: request.evidence.control_default,
            stratify: request.evidence.stratify,
            prior: request.evidence.prior,
            calibration: request.evidence.calibration.clone(),
            decisions: request.evidence.decisions.clone(),
        },
    }
}

impl Provenance {
    /// The model that was asked about.
    pub fn model_info(&self) -> ModelInfo {
        let Self {
            model,
            model_digest,
            tokenizer_digest,
            dtype,
            rounding,
            quantization,
            device,
            commit,
            backend,
            adapter_digest,
            ..
        } = self.clone();
        ModelInfo {
            id: model,
            digest: model_digest,
            tokenizer_digest,
            dtype,
            rounding,
            quantization,
            device,
            commit,
            backend,
            adapter: adapter_digest,
        }
    }

    /// The request of the audit, which cites `plan`.
    pub fn audit_request(&self, plan: Option<CitedPlan>) -> AuditRequest {
        let ExpandedRequest {
            methods,
            overflow,
            metrics,
            primary,
            control,
            control_default,
            stratify,
            prior,
            calibration,
            decisions,
        } = self.request.clone();
        let evidence =
            EvidenceRequest { primary, control, control_default, stratify, prior, calibration, decisions, plan };
        AuditRequest { model: self.model.clone(), methods, overflow, metrics, evidence }
    }
}

impl OtherModel {
    /// The model without its place, which reports do not name.
    pub fn model_info(&self) -> ModelInfo {
        let Self { model, model_digest, tokenizer_digest, dtype, rounding, quantization, backend, adapter_digest } =
            self.clone();
        ModelInfo {
            id: model,
            digest: model_digest,
            tokenizer_digest,
            dtype,
            rounding,
            quantization,
            device: String::new(),
            commit: None,
            backend,
            adapter: adapter_digest,
        }
    }
}

impl From<&ModelInfo> for OtherModel {
    fn from(model: &ModelInfo) -> Self {
        let ModelInfo { id, digest, tokenizer_digest, dtype, rounding, quantization, backend, adapter, .. } =
            model.clone();
        Self {
            model: id,
            model_digest: digest,
            tokenizer_digest,
            dtype,
            rounding,
            quantization,
            backend,
            adapter_digest: adapter,
        }
    }
}
