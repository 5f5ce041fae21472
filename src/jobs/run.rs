//! Runs one audit: every sample through the scorer, then the report. The service and the command line share it.

use super::report::{self, AuditReport, Findings};
use super::sample::{Sample, SampleId};
use super::spec::AuditSpec;
use crate::methods::{LabelledMethod, Weighting, dataset_weights};
use crate::scorer::{Bound, IN_FLIGHT, Input, Scorer, ScorerError, TextError, TextResult, Usage};
use crate::statistics::PositionProfile;
use futures::{StreamExt, stream};
use std::collections::HashMap;
use std::sync::Arc;

/// The scores of one sample, one place for each column.
#[derive(Clone, Debug)]
pub struct SampleScores {
    pub id: Option<SampleId>,
    /// Whether the sample is a member, where that was said.
    pub member: Option<bool>,
    pub scored_tokens: usize,
    pub truncated: bool,
    pub group: Option<String>,
    /// Windows that the text was read in, where that was asked for.
    pub windows: Option<usize>,
    /// The alphas of methods weighted by `slope`, by label.
    pub alpha_used: Vec<(Arc<str>, f64)>,
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
    let bound = scorer.bind(&spec.plan).await?;
    let columns = columns(&bound.methods);
    let methods = columns.iter().map(|column| column.method.clone());
    let (later, first): (Vec<_>, Vec<_>) = methods.partition(needs_entropies);
    let rounds = if later.is_empty() { 1 } else { 2 };
    let mut found = Found::new(&spec, columns.len());

    let round = Arc::new(bound.only(first, Arc::new([])));
    found.round(scorer, &round, &spec, &columns, |done| progress(done / rounds)).await?;
    if rounds == 2 {
        // Now that the entropies of all texts are known. Their statistics are in the cache, as far as it reaches.
        let weights = dataset_weights(found.profile.mean_entropy()).into();
        let round = Arc::new(bound.only(later, weights));
        let samples = spec.samples.len();
        found.round(scorer, &round, &spec, &columns, |done| progress((samples + done) / rounds)).await?;
    }
    // Sorting and resampling the scores of many samples and methods is no work for the async runtime's threads.
    let outcome = move |wanted: &dyn Fn() -> bool| {
        let Found { scores, profile, usage } = found;
        let findings = Findings { scores: &scores, columns: &columns, profile: &profile, usage };
        let report = report::build(&spec, &bound, &findings, wanted);
        AuditOutcome { report, columns, scores }
    };
    scorer.workers().run_behind(outcome).await
}

/// Whether the method weights tokens by what all texts of the audit have in common.
fn needs_entropies(method: &LabelledMethod) -> bool {
    method.method.pdr.is_some_and(|pdr| pdr.weighting == Weighting::EntropyDataset)
}

/// What is known of the samples so far.
struct Found {
    scores: Vec<SampleScores>,
    profile: PositionProfile,
    usage: Usage,
}

impl Found {
    fn new(spec: &AuditSpec, columns: usize) -> Self {
        let row = |sample: &Sample| SampleScores {
            id: sample.id.clone(),
            member: sample.is_member(),
            scored_tokens: 0,
            truncated: false,
            group: sample.group.clone(),
            windows: None,
            alpha_used: Vec::new(),
            scores: vec![None; columns],
            errors: Vec::new(),
        };
        Self {
            scores: spec.samples.iter().map(row).collect(),
            profile: PositionProfile::default(),
            usage: Usage::default(),
        }
    }

    /// Scores every sample by the methods of one round, and keeps the scores in their columns.
    async fn round(
        &mut self,
        scorer: &Scorer,
        bound: &Arc<Bound>,
        spec: &Arc<AuditSpec>,
        columns: &[Column],
        progress: impl Fn(usize),
    ) -> Result<(), ScorerError> {
        let first = bound.dataset_weights.is_empty();
        let mut done = 0;
        let one = async |rows: Vec<usize>| {
            let Sample { text, neighbors, .. } = &spec.samples[rows[0]];
            let input = Input { id: None, text: text.clone(), neighbors: neighbors.clone() };
            (rows, scorer.score_behind(bound, input).await)
        };
        let mut scored = stream::iter(same_texts(spec)).map(one).buffered(IN_FLIGHT);
        while let Some((rows, one)) = scored.next().await {
            let one = one?;
            for (result, stats) in one.results.iter().zip(&one.stats) {
                for &row in &rows {
                    let row = &mut self.scores[row];
                    if first {
                        self.profile.add(row.member, stats);
                    }
                    row.keep(result.clone(), columns);
                }
            }
            let tokens = if first { one.usage.tokens * rows.len() } else { 0 };
            self.usage.add(Usage { tokens, ..one.usage });
            done += rows.len();
            progress(done);
        }
        Ok(())
    }
}

/// The samples of each distinct text, in the order in which texts appear: a text is scored once.
fn same_texts(spec: &AuditSpec) -> Vec<Vec<usize>> {
    let (mut places, mut groups) = (HashMap::new(), Vec::<Vec<usize>>::new());
    for (row, sample) in spec.samples.iter().enumerate() {
        let place = *places.entry((&sample.text, &sample.neighbors)).or_insert(groups.len());
        match groups.get_mut(place) {
            Some(rows) => rows.push(row),
            None => groups.push(vec![row]),
        }
    }
    groups
}

impl SampleScores {
    /// Puts scores where their columns are. Both are in the same order, and a score may be missing.
    fn keep(&mut self, result: TextResult, columns: &[Column]) {
        let mut scores = result.scores.into_iter().peekable();
        for (place, column) in self.scores.iter_mut().zip(columns) {
            if let Some((_, score)) = scores.next_if(|(label, _)| *label == column.method.label) {
                *place = Some(score);
            }
        }
        self.scored_tokens = result.scored_tokens;
        self.truncated = result.truncated;
        self.windows = result.windows;
        self.alpha_used.extend(result.alpha_used);
        // What concerns the whole text comes again in every round.
        let new = result.errors.into_iter().filter(|error| !self.errors.contains(error)).collect::<Vec<_>>();
        self.errors.extend(new);
    }
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
