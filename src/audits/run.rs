//! Runs one audit: every sample through the scorer, then the report. The service and the command line share it.

use super::columns::{Column, columns};
use super::error::AuditFailure;
use super::ordered_profile::OrderedProfile;
use super::report::{AuditReport, build_report};
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::sample::Sample;
use super::scoring::{BoundRequest, Round, is_of_one_text};
use super::selected_tokens::{TextTokens, TokenTally};
use crate::engine::Stats;
use crate::methods::{LabelledMethod, Weighting, dataset_weights};
use crate::scorer::{IN_FLIGHT, Input, Scored, Scorer, ScorerError, TextError, Usage};
use futures::{StreamExt, stream};
use std::collections::HashMap;
use std::sync::Arc;

/// An audit that has been run.
#[derive(Clone, Debug)]
pub struct AuditOutcome {
    pub report: AuditReport,
    pub results: AuditResults,
}

/// Runs an audit; `progress` is told after each sample how many are done. Dropping the future cancels the audit at once, and to
/// run the request again resumes it: what was scored before comes from the cache of statistics.
///
/// # Errors
/// [`AuditFailure`] where the model or the service fails; what is wrong with one sample is part of the report.
pub async fn run(
    request: Arc<AuditRequest>,
    scorer: &Scorer,
    progress: impl Fn(usize),
) -> Result<AuditOutcome, AuditFailure> {
    let results = score_samples(&request, scorer, progress).await?;
    // Sorting and resampling the scores of many samples and methods is no work for the async runtime's threads.
    let report = move |wanted: &dyn Fn() -> bool| {
        let report = build_report(&request, &results, wanted)?;
        Ok(AuditOutcome { report, results })
    };
    scorer.workers().run_behind(report).await?
}

/// In one round or, with methods that are weighted by what all texts have in common, in two.
async fn score_samples(
    request: &AuditRequest,
    scorer: &Scorer,
    progress: impl Fn(usize),
) -> Result<AuditResults, AuditFailure> {
    let binding = BoundRequest::new(scorer, request).await?;
    let mut scores = ScoreTable::new(&request.samples, columns(&binding.bound.methods));
    let methods = scores.columns.iter().map(|column| column.method.clone());
    let (later, first): (Vec<_>, Vec<_>) = methods.partition(needs_entropies);
    let rounds = if later.is_empty() { 1 } else { 2 };

    let mut profile = OrderedProfile::new(&request.samples, request.metrics.position_profile.clone());
    let round = binding.round(first, Arc::new([]));
    let add = |row: usize, stats: &Stats| profile.add(row, Arc::clone(stats));
    let mut usage = scores.round(&round, add, |done| progress(done / rounds)).await?;
    let (profile, mut repeated_passes) = (profile.finish(), 0);
    if rounds == 2 {
        // Now that the entropies of all texts are known. The baselines of these methods ran in the first round and look at the
        // same sequences, so the cache has their statistics, as far as it reaches.
        let round = binding.round(later, dataset_weights(profile.mean_entropy()).into());
        let samples = request.samples.len();
        let again = scores.round(&round, |_, _| {}, |done| progress((samples + done) / rounds)).await?;
        repeated_passes = again.forward_passes;
        usage.add(Usage { tokens: 0, ..again });
    }
    let mut models = binding.bound.infos().into_iter();
    let model = models.next().ok_or_else(|| ScorerError::Internal("an audit is bound to no model".to_owned()))?;
    let labelled = request.samples.iter().any(|sample| sample.is_member().is_some());
    let most = request.metrics.selected_tokens.unwrap_or(0);
    let text = |id| binding.bound.models[0].tokenizer.piece(id);
    Ok(AuditResults {
        selected_tokens: scores.tokens.most_selected(&binding.selections, most, labelled, text),
        columns: scores.columns,
        rows: scores.rows,
        profile: profile.rows(),
        group_profiles: profile.group_rows(),
        usage,
        repeated_passes,
        model,
        other_models: models.collect(),
    })
}

/// Whether the method weights tokens by what all texts of the audit have in common.
fn needs_entropies(method: &LabelledMethod) -> bool {
    method.method.pdr.is_some_and(|pdr| pdr.weighting == Weighting::EntropyDataset)
}

/// The scores of all samples, as far as they are known.
struct ScoreTable<'a> {
    samples: &'a [Sample],
    columns: Vec<Column>,
    rows: Vec<SampleScores>,
    /// The tokens that methods select.
    tokens: TokenTally,
}

impl<'a> ScoreTable<'a> {
    fn new(samples: &'a [Sample], columns: Vec<Column>) -> Self {
        let rows = samples.iter().map(|sample| SampleScores::unknown(sample, columns.len())).collect();
        Self { samples, columns, rows, tokens: TokenTally::default() }
    }

    /// Scores every sample by the methods of one round, keeps the scores in their columns, and gives `add` the statistics of
    /// each sample once. What one sample fails of is an error of that sample, unless as many as run at a time fail before
    /// any is scored, or all do.
    async fn round(
        &mut self,
        round: &Round<'_>,
        mut add: impl FnMut(usize, &Stats),
        progress: impl Fn(usize),
    ) -> Result<Usage, AuditFailure> {
        let (mut usage, mut done, mut scored, mut failed, mut failure) = (Usage::default(), 0, 0, 0, None);
        let samples = self.samples;
        let one = |rows: Vec<usize>| async move {
            let Sample { text, neighbors, .. } = &samples[rows[0]];
            let input = Input { id: None, text: text.clone(), neighbors: neighbors.clone() };
            (rows, round.score_and_select(input).await)
        };
        let mut texts = stream::iter(same_texts(samples)).map(one).buffered(IN_FLIGHT);
        while let Some((rows, one)) = texts.next().await {
            done += rows.len();
            match one {
                Ok((one, tokens)) => {
                    scored += 1;
                    usage.add(Usage { tokens: one.usage.tokens * rows.len(), ..one.usage });
                    self.keep(&rows, one, &tokens, &mut add);
                }
                Err(error) if is_of_one_text(&error) => {
                    tracing::error!(sample = rows[0], %error, "the model failed on a sample of an audit");
                    self.fail(&rows, &mut add);
                    failed += 1;
                    if scored == 0 && failed == IN_FLIGHT {
                        return Err(error);
                    }
                    failure = Some(error);
                }
                Err(error) => return Err(error),
            }
            progress(done);
        }
        match failure {
            Some(error) if scored == 0 => Err(error),
            _ => Ok(usage),
        }
    }

    /// The scores of a text for all samples of it.
    fn keep(&mut self, rows: &[usize], one: Scored, tokens: &TextTokens, add: &mut impl FnMut(usize, &Stats)) {
        for (result, stats) in one.results.iter().zip(&one.stats) {
            for &row in rows {
                add(row, stats);
                self.tokens.add(self.samples[row].is_member(), tokens);
                self.rows[row].keep(result.clone(), &self.columns);
            }
        }
    }

    /// A text that the model failed on. Why is the operator's business.
    fn fail(&mut self, rows: &[usize], add: &mut impl FnMut(usize, &Stats)) {
        let detail = "the model failed on this text; the service's log says why";
        for &row in rows {
            add(row, &Stats::from([]));
            self.rows[row].fail(TextError::whole("model_failed", detail.to_owned()));
        }
    }
}

/// The samples of each distinct text, in the order in which texts appear: a text is scored once.
fn same_texts(samples: &[Sample]) -> Vec<Vec<usize>> {
    let (mut places, mut texts) = (HashMap::new(), Vec::<Vec<usize>>::new());
    for (row, sample) in samples.iter().enumerate() {
        let place = *places.entry((&sample.text, &sample.neighbors)).or_insert(texts.len());
        match texts.get_mut(place) {
            Some(rows) => rows.push(row),
            None => texts.push(vec![row]),
        }
    }
    texts
}
