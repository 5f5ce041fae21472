//! From the scores of an audit to its report: pure.

use super::run::{Column, SampleScores};
use super::spec::{AuditSpec, Metrics};
use crate::methods::LabelledMethod;
use crate::scorer::{Model, Usage};
use crate::statistics::{AuditSample, Roc, RocPoint, Sample, TprAtFpr, Warning, auroc, warnings};
use serde::Serialize;
use std::borrow::Cow;
use utoipa::ToSchema;

/// What an audit found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AuditReport {
    pub samples: SampleCounts,
    /// One entry per method, in the order of the request.
    pub methods: Vec<MethodReport>,
    pub warnings: Vec<Warning>,
    pub usage: Usage,
    pub provenance: Provenance,
}

/// How many samples there were, and which were left out.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SampleCounts {
    pub total: usize,
    pub members: usize,
    pub non_members: usize,
    pub excluded: Vec<Excluded>,
}

/// A sample that a method (or, without a label, every method) could not score.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Excluded {
    /// Place among the samples, from 0.
    pub index: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Label of the method; absent where no method could run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[schema(value_type = String)]
    pub code: Cow<'static, str>,
}

/// What one method found.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct MethodReport {
    #[serde(flatten)]
    pub method: LabelledMethod,
    /// Samples that have a score.
    pub scored: usize,
    /// Absent without labels.
    #[serde(flatten)]
    pub separation: Option<Separation>,
    /// For a method with PDR: against the same method without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub versus_baseline: Option<VersusBaseline>,
    /// Points of the ROC curve, where asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub roc: Option<Vec<RocPoint>>,
}

/// How far apart the two classes are.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Separation {
    /// Area under the ROC curve; null where a class has no scored sample.
    pub auroc: Option<f64>,
    /// By DeLong; null where a class has fewer than two samples.
    pub auroc_standard_error: Option<f64>,
    /// In the order of the targets; empty where there is no ROC curve.
    pub tpr_at_fpr: Vec<TprAtFpr>,
    /// The smallest false-positive rate at which 95 % of the members are recognised.
    pub fpr_at_95_tpr: Option<f64>,
}

/// A method with PDR against its baseline, on the samples that both score.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct VersusBaseline {
    /// Label of the baseline, whether or not the request lists it.
    pub baseline: String,
    /// AUROC with PDR minus AUROC without.
    pub delta: f64,
}

/// What is needed to do the same again.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Provenance {
    pub model: String,
    pub model_digest: String,
    pub tokenizer_digest: String,
    pub dtype: String,
    pub device: String,
    /// The commit of a model from the Hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    pub program_version: String,
    /// The request with its defaults filled in.
    pub request: ExpandedRequest,
}

/// The request of an audit with its defaults filled in, without the samples.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ExpandedRequest {
    pub methods: Vec<LabelledMethod>,
    pub overflow: crate::scorer::Overflow,
    pub metrics: Metrics,
}

/// Puts the report together. `columns` are the methods of the request, then baselines that it does not list.
pub(super) fn build(
    spec: &AuditSpec,
    model: &Model,
    scores: &[SampleScores],
    columns: &[Column],
    usage: Usage,
) -> AuditReport {
    let member = |wanted: bool| spec.samples.iter().filter(|s| s.member == Some(wanted)).count();
    let listed = columns.iter().enumerate().filter(|(_, column)| column.listed);
    AuditReport {
        samples: SampleCounts {
            total: spec.samples.len(),
            members: member(true),
            non_members: member(false),
            excluded: excluded(scores, columns),
        },
        methods: listed.map(|(at, _)| method_report(spec, scores, columns, at)).collect(),
        warnings: warnings(&audit_samples(spec, scores), &spec.metrics.fpr_targets),
        usage,
        provenance: provenance(spec, model),
    }
}

fn excluded(scores: &[SampleScores], columns: &[Column]) -> Vec<Excluded> {
    let listed = |label: &Option<String>| {
        label.as_ref().is_none_or(|label| columns.iter().any(|c| c.listed && *c.method.label == **label))
    };
    let entries = scores.iter().enumerate().flat_map(|(index, sample)| {
        let errors = sample.errors.iter().filter(|e| listed(&e.label));
        errors.map(move |e| Excluded { index, id: sample.id.clone(), label: e.label.clone(), code: e.code.clone() })
    });
    entries.collect()
}

fn method_report(spec: &AuditSpec, scores: &[SampleScores], columns: &[Column], at: usize) -> MethodReport {
    let samples = |which: &dyn Fn(&SampleScores) -> Option<f64>| -> Vec<Sample> {
        let labelled = spec.samples.iter().zip(scores);
        labelled.filter_map(|(sample, row)| Some(Sample { score: which(row)?, member: sample.member? })).collect()
    };
    let roc = Roc::new(&samples(&|row| row.scores[at])).ok();
    let labelled = spec.samples.iter().any(|sample| sample.member.is_some());
    MethodReport {
        method: columns[at].method.clone(),
        scored: scores.iter().filter(|row| row.scores[at].is_some()).count(),
        separation: labelled.then(|| separation(roc.as_ref(), &spec.metrics.fpr_targets)),
        versus_baseline: columns[at].baseline.and_then(|base| {
            let both = |which: usize| samples(&move |row| row.scores[at].and(row.scores[base]).and(row.scores[which]));
            let delta = auroc(&both(at)).ok()? - auroc(&both(base)).ok()?;
            Some(VersusBaseline { baseline: columns[base].method.label.to_string(), delta })
        }),
        roc: roc.filter(|_| spec.metrics.roc).map(|roc| roc.points()),
    }
}

fn separation(roc: Option<&Roc>, targets: &[f64]) -> Separation {
    Separation {
        auroc: roc.map(Roc::auroc),
        auroc_standard_error: roc.and_then(Roc::auroc_standard_error),
        tpr_at_fpr: roc.iter().flat_map(|roc| targets.iter().map(|&fpr| roc.tpr_at_fpr(fpr))).collect(),
        fpr_at_95_tpr: roc.map(Roc::fpr_at_95_tpr),
    }
}

fn audit_samples<'a>(spec: &'a AuditSpec, scores: &[SampleScores]) -> Vec<AuditSample<'a>> {
    let pairs = spec.samples.iter().zip(scores);
    let sample = |(sample, row): (&'a super::spec::Sample, &SampleScores)| AuditSample {
        text: sample.text.as_bytes(),
        member: sample.member,
        scored_tokens: row.scored_tokens,
        truncated: row.truncated,
    };
    pairs.map(sample).collect()
}

fn provenance(spec: &AuditSpec, model: &Model) -> Provenance {
    Provenance {
        model: model.id.clone(),
        model_digest: model.digest.clone(),
        tokenizer_digest: model.tokenizer_digest.clone(),
        dtype: model.dtype.into(),
        device: model.device.clone(),
        commit: model.commit.clone(),
        program_version: env!("CARGO_PKG_VERSION").into(),
        request: ExpandedRequest {
            methods: spec.plan.methods.to_vec(),
            overflow: spec.plan.overflow,
            metrics: spec.metrics.clone(),
        },
    }
}
