//! Runs one audit: every sample through the scorer, then the report. The service and the command line share it.

use super::report::{self, AuditReport};
use super::spec::AuditSpec;
use crate::methods::LabelledMethod;
use crate::scorer::{IN_FLIGHT, Input, Plan, Scorer, ScorerError, TextError, Usage};
use futures::{StreamExt, TryStreamExt, stream};
use std::sync::Arc;

/// The scores of one sample, one place for each column.
#[derive(Clone, Debug)]
pub struct SampleScores {
    pub id: Option<String>,
    /// Whether the sample is a member, where that was said.
    pub member: Option<bool>,
    pub scored_tokens: usize,
    pub truncated: bool,
    pub scores: Vec<Option<f64>>,
    pub errors: Vec<TextError>,
}

/// A method that an audit computes.
#[derive(Clone, Debug)]
pub struct Column {
    pub method: LabelledMethod,
    /// Whether the request lists it; the others are baselines that listed methods are compared with.
    pub listed: bool,
    /// The column of the same method without PDR.
    pub(super) baseline: Option<usize>,
}

/// What an audit leaves behind.
#[derive(Clone, Debug)]
pub struct AuditOutcome {
    pub report: AuditReport,
    /// The listed columns come first.
    pub columns: Vec<Column>,
    /// One row per sample, in order.
    pub scores: Vec<SampleScores>,
}

/// Runs an audit; `progress` is told after each sample how many are done.
///
/// # Errors
/// [`ScorerError`] where the model or the service fails; what is wrong with one sample stands in the report.
pub async fn run(scorer: &Scorer, spec: Arc<AuditSpec>, progress: impl Fn(usize)) -> Result<AuditOutcome, ScorerError> {
    let model = scorer.open(&spec.plan).await?;
    let columns = columns(&spec.plan.methods);
    let methods = columns.iter().map(|c| c.method.clone()).collect();
    let plan = Plan { methods, tokens: false, ..spec.plan.clone() };
    let samples = Arc::clone(&spec);
    let input = move |at: usize| Input { id: samples.samples[at].id.clone(), text: samples.samples[at].text.clone() };
    let inputs = stream::iter((0..spec.samples.len()).map(input));
    let (mut scores, mut usage) = (Vec::with_capacity(spec.samples.len()), Usage::default());
    let mut scored = inputs.map(|input| scorer.score_behind(&plan, input)).buffered(IN_FLIGHT);
    while let Some(one) = scored.try_next().await? {
        usage.add(one.usage);
        let member = spec.samples.get(scores.len()).and_then(|sample| sample.member);
        scores.extend(one.results.into_iter().map(|result| row(result, member, &columns)));
        progress(scores.len());
    }
    // Sorting the scores of many samples and methods is no work for the async runtime's threads.
    let outcome = move || {
        let report = report::build(&spec, &model, &scores, &columns, usage);
        AuditOutcome { report, columns, scores }
    };
    scorer.workers().run(outcome).await
}

/// The methods of the request, then the baselines of those with PDR that the request does not list itself.
pub(super) fn columns(methods: &[LabelledMethod]) -> Vec<Column> {
    let column = |method: &LabelledMethod| Column { method: method.clone(), listed: true, baseline: None };
    let mut columns: Vec<Column> = methods.iter().map(column).collect();
    for at in 0..columns.len() {
        let Some(baseline) = columns[at].method.method.baseline() else { continue };
        let found = columns.iter().position(|c| c.method.method == baseline);
        columns[at].baseline = Some(found.unwrap_or(columns.len()));
        if found.is_none() {
            let method = unique(LabelledMethod::from(baseline), &columns);
            columns.push(Column { method, listed: false, baseline: None });
        }
    }
    columns
}

/// The method under a label that no column has: a client may have given the natural one to another method.
fn unique(mut method: LabelledMethod, columns: &[Column]) -> LabelledMethod {
    while columns.iter().any(|c| c.method.label == method.label) {
        method.label = format!("{} (baseline)", method.label).into();
    }
    method
}

fn row(result: crate::scorer::TextResult, member: Option<bool>, columns: &[Column]) -> SampleScores {
    // Both are in the order of the methods; a score may be missing.
    let mut scores = result.scores.iter().peekable();
    let mut score = |column: &Column| scores.next_if(|(label, _)| *label == column.method.label).map(|(_, s)| *s);
    SampleScores {
        scores: columns.iter().map(&mut score).collect(),
        id: result.id,
        member,
        scored_tokens: result.scored_tokens,
        truncated: result.truncated,
        errors: result.errors,
    }
}
