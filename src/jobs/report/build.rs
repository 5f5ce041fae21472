//! From the scores of an audit to its report: pure.

use super::methods::Table;
use super::{
    AuditReport, Excluded, ExpandedRequest, GroupMethod, GroupReport, MethodReport, OtherModel, Provenance,
    SampleCounts,
};
use crate::jobs::run::{Column, SampleScores};
use crate::jobs::spec::AuditSpec;
use crate::pool::Model;
use crate::scorer::{Bound, Usage};
use crate::statistics::{AuditSample, PositionProfile, Warning, method_warnings, warnings};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::sync::Arc;

/// The most positions that a report lists.
const MOST_POSITIONS: usize = 4096;

/// What was found, before it is summed up.
pub struct Findings<'a> {
    /// In the order of the samples.
    pub scores: &'a [SampleScores],
    /// The methods of the request, then baselines that it does not list.
    pub columns: &'a [Column],
    pub profile: &'a PositionProfile,
    pub usage: Usage,
}

/// Puts the report together; it is of no use once it is not `wanted` any more.
pub fn build(spec: &AuditSpec, bound: &Bound, findings: &Findings, wanted: &dyn Fn() -> bool) -> AuditReport {
    let Findings { scores, columns, profile, usage } = findings;
    let everyone: Vec<usize> = (0..scores.len()).collect();
    let of = |rows: &[usize]| -> Vec<&SampleScores> { rows.iter().map(|&row| &scores[row]).collect() };
    let counts = |rows: &[usize], member: bool| rows.iter().filter(|row| scores[**row].member == Some(member)).count();
    let group = |(group, rows): (&str, Vec<usize>)| GroupReport {
        group: group.to_owned(),
        total: rows.len(),
        members: counts(&rows, true),
        non_members: counts(&rows, false),
        methods: (Table::new(columns, &spec.metrics, &of(&rows)).findings(wanted).into_iter())
            .map(|(method, findings)| GroupMethod { label: Arc::clone(&method.label), findings })
            .collect(),
        warnings: caution(spec, findings, &rows),
    };
    let profile = profile.rows(MOST_POSITIONS);
    AuditReport {
        samples: SampleCounts {
            total: scores.len(),
            members: counts(&everyone, true),
            non_members: counts(&everyone, false),
            excluded: excluded(scores, columns),
        },
        methods: (Table::new(columns, &spec.metrics, &of(&everyone)).findings(wanted).into_iter())
            .map(|(method, findings)| MethodReport { method: method.clone(), findings })
            .collect(),
        groups: groups(spec).into_iter().map(group).collect(),
        position_profile: profile.rows,
        positions_left_out: profile.left_out,
        warnings: caution(spec, findings, &everyone),
        usage: *usage,
        provenance: provenance(spec, bound, columns),
    }
}

/// The groups in the order in which they appear, each with its samples.
fn groups(spec: &AuditSpec) -> Vec<(&str, Vec<usize>)> {
    let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
    for (row, sample) in spec.samples.iter().enumerate() {
        let Some(group) = sample.group.as_deref() else { continue };
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    groups
}

fn excluded(scores: &[SampleScores], columns: &[Column]) -> Vec<Excluded> {
    let labels: HashSet<&str> = columns.iter().filter(|c| c.listed).map(|c| &*c.method.label).collect();
    let listed = |label: &Option<Arc<str>>| label.as_ref().is_none_or(|label| labels.contains(&**label));
    let entries = scores.iter().enumerate().flat_map(|(index, sample)| {
        let errors = sample.errors.iter().filter(|e| listed(&e.label));
        errors.map(move |e| Excluded { index, id: sample.id.clone(), label: e.label.clone(), code: e.code.clone() })
    });
    entries.collect()
}

fn caution(spec: &AuditSpec, findings: &Findings, rows: &[usize]) -> Vec<Warning> {
    let (scores, targets) = (findings.scores, &spec.metrics.fpr_targets);
    let sample = |&row: &usize| AuditSample {
        text: spec.samples[row].text.as_bytes(),
        member: scores[row].member,
        scored_tokens: scores[row].scored_tokens,
        truncated: scores[row].truncated,
    };
    let mut all = warnings(&rows.iter().map(sample).collect::<Vec<_>>(), targets);
    let count = |member, counted: &dyn Fn(&SampleScores) -> bool| {
        rows.iter().map(|&row| &scores[row]).filter(|row| row.member == Some(member) && counted(row)).count()
    };
    let labelled = [true, false].map(|member| count(member, &|_| true));
    for (at, column) in findings.columns.iter().enumerate().filter(|(_, column)| column.listed) {
        let scored = [true, false].map(|member| count(member, &|row| row.scores[at].is_some()));
        all.extend(method_warnings(&column.method.label, scored, labelled, targets));
    }
    all
}

fn digest(spec: &AuditSpec) -> String {
    let mut digest = Sha256::new();
    for sample in &spec.samples {
        digest.update(match sample.is_member() {
            Some(true) => b"1",
            Some(false) => b"0",
            None => b"-",
        });
        digest.update((sample.text.len() as u64).to_le_bytes());
        digest.update(&sample.text);
    }
    let hex: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn provenance(spec: &AuditSpec, bound: &Bound, columns: &[Column]) -> Provenance {
    let model = &bound.models[0];
    let other = |model: &std::sync::Arc<Model>| OtherModel {
        model: model.id().to_owned(),
        model_digest: model.info.digest.clone(),
        tokenizer_digest: model.tokenizer_digest.to_string(),
        dtype: model.info.dtype.clone(),
        rounding: model.info.rounding,
    };
    Provenance {
        model: model.id().to_owned(),
        model_digest: model.info.digest.clone(),
        tokenizer_digest: model.tokenizer_digest.to_string(),
        dtype: model.info.dtype.clone(),
        rounding: model.info.rounding,
        device: model.info.device.clone(),
        commit: model.info.commit.clone(),
        other_models: bound.models[1..].iter().chain(&bound.generators).map(other).collect(),
        program_version: env!("CARGO_PKG_VERSION").into(),
        dataset_digest: digest(spec),
        request: ExpandedRequest {
            methods: columns.iter().filter(|column| column.listed).map(|column| column.method.clone()).collect(),
            overflow: spec.plan.overflow,
            metrics: spec.metrics.clone(),
        },
    }
}
