//! Runs one audit: every sample through the scorer, then the report. The service and the command line share it.

use super::columns::{Column, columns};
use super::error::AuditFailure;
use super::ordered_profile::OrderedProfile;
use super::report::{AuditReport, build_report};
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::sample_index::SampleIndex;
use super::scoring::{BoundRequest, Round, is_of_one_text};
use super::selected_tokens::{TextTokens, TokenTally};
use super::tuned_splits::{TunedSplits, TuningProgress};
use crate::datasets::Sample;
use crate::datasets::SampleBlocks;
use crate::engine::Stats;
use crate::methods::{LabelledMethod, Weighting, dataset_weights};
use crate::scorer::{IN_FLIGHT, Input, Scored, Scorer, ScorerError, TextError, Usage};
use crate::store::StoreError;
use futures::{StreamExt, TryStreamExt};
use std::collections::HashMap;
use std::sync::Arc;

/// An audit that has been run.
#[derive(Clone, Debug)]
pub struct AuditOutcome {
    pub report: AuditReport,
    pub results: AuditResults,
}

/// What a run tells while it goes on.
#[derive(Clone, Debug, PartialEq)]
pub enum RunEvent {
    /// The models are open: what the bits of the numbers depend on.
    Bound { numerics: String },
    /// A model is tuned on some of the samples.
    Tuned(TuningProgress),
    /// So many samples are done.
    Scored { done: usize },
}

/// Runs an audit of these samples, and tells `progress` how far it is. Dropping the future cancels the audit at once, and to run
/// the request again resumes it: what was scored before comes from the cache of statistics.
///
/// # Errors
/// [`AuditFailure`] where the model or the service fails; what is wrong with one sample is part of the report.
pub async fn run(
    request: Arc<AuditRequest>,
    samples: &SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<AuditOutcome, AuditFailure> {
    let results = score_samples(&request, samples, scorer, progress).await?;
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
    samples: &SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<AuditResults, AuditFailure> {
    let tuned = TunedSplits::tune(request, samples, scorer, |step| progress(RunEvent::Tuned(step))).await?;
    let binding = BoundRequest::new(scorer, request, &tuned.splits).await?;
    progress(RunEvent::Bound { numerics: binding.bound.numerics() });
    let columns = columns(&binding.bound.methods);
    let index = SampleIndex::read(samples, columns.len()).await?;
    let mut profile = OrderedProfile::new(request.metrics.position_profile.clone());
    let labelled = index.rows.iter().any(|row| row.member.is_some());
    let mut scores = ScoreTable {
        samples,
        columns,
        rows: index.rows,
        is_copy: index.is_copy,
        copies: index.copies,
        tokens: TokenTally::default(),
    };
    let methods = scores.columns.iter().map(|column| column.method.clone());
    let (later, first): (Vec<_>, Vec<_>) = methods.partition(needs_entropies);
    let rounds = if later.is_empty() { 1 } else { 2 };
    let scored = |done: usize| progress(RunEvent::Scored { done: done / rounds });

    let round = binding.round(first, Arc::new([]));
    let add = |row: usize, sample: &SampleScores, stats: &Stats| profile.add(row, sample, Arc::clone(stats));
    let mut usage = scores.round(&round, add, scored).await?;
    let (profile, mut repeated_passes) = (profile.finish(), 0);
    if rounds == 2 {
        // Now that the entropies of all texts are known. The baselines of these methods ran in the first round and look at the
        // same sequences, so the cache has their statistics, as far as it reaches.
        let round = binding.round(later, dataset_weights(profile.mean_entropy()).into());
        let samples = scores.rows.len();
        let again = scores.round(&round, |_, _, _| {}, |done| scored(samples + done)).await?;
        repeated_passes = again.forward_passes;
        usage.add(Usage { tokens: 0, ..again });
    }
    let mut models = binding.bound.infos().into_iter();
    let model = models.next().ok_or_else(|| ScorerError::Internal("an audit is bound to no model".to_owned()))?;
    let most = request.metrics.selected_tokens.unwrap_or(0);
    let text = |id| binding.bound.models[0].tokenizer.piece(id);
    Ok(AuditResults {
        selected_tokens: scores.tokens.most_selected(&binding.selections, most, labelled, text),
        columns: scores.columns,
        rows: scores.rows,
        dataset_digest: index.digest,
        profile: profile.rows(),
        group_profiles: profile.group_rows(),
        usage,
        repeated_passes,
        splits: tuned.outcomes.clone(),
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
    samples: &'a SampleBlocks,
    columns: Vec<Column>,
    rows: Vec<SampleScores>,
    /// For each sample whether an earlier one has the same text: a text is scored once.
    is_copy: Vec<bool>,
    copies: HashMap<usize, Vec<usize>>,
    /// The tokens that methods select.
    tokens: TokenTally,
}

impl ScoreTable<'_> {
    /// Scores every sample by the methods of one round, keeps the scores in their columns, and gives `add` the statistics of
    /// each sample once. What one sample fails of is an error of that sample, unless as many as run at a time fail before
    /// any is scored, or all do.
    async fn round(
        &mut self,
        round: &Round<'_>,
        mut add: impl FnMut(usize, &SampleScores, &Stats),
        progress: impl Fn(usize),
    ) -> Result<Usage, AuditFailure> {
        let (mut usage, mut done, mut scored, mut failed, mut failure) = (Usage::default(), 0, 0, 0, None);
        let (samples, is_copy) = (self.samples, &self.is_copy);
        let mut keeper =
            Keeper { columns: &self.columns, copies: &self.copies, rows: &mut self.rows, tokens: &mut self.tokens };
        let firsts = samples.samples().try_filter(|(row, _)| std::future::ready(!is_copy[*row]));
        let one = |read: Result<(usize, Sample), StoreError>| async move {
            let (row, Sample { text, neighbors, .. }) = read?;
            Ok::<_, AuditFailure>((row, round.score_and_select(Input { id: None, text, neighbors }).await))
        };
        let mut texts = std::pin::pin!(firsts.map(one).buffered(IN_FLIGHT));
        while let Some((row, one)) = texts.try_next().await? {
            let same = keeper.same(row);
            done += same.len();
            match one {
                Ok((one, tokens)) => {
                    scored += 1;
                    usage.add(Usage { tokens: one.usage.tokens * same.len(), ..one.usage });
                    keeper.keep(&same, one, &tokens, &mut add);
                }
                Err(error) if is_of_one_text(&error) => {
                    tracing::error!(sample = row, %error, "the model failed on a sample of an audit");
                    keeper.fail(&same, &mut add);
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
}

/// Writes what came of a text into the rows of all samples that have it.
struct Keeper<'a> {
    columns: &'a [Column],
    copies: &'a HashMap<usize, Vec<usize>>,
    rows: &'a mut [SampleScores],
    tokens: &'a mut TokenTally,
}

impl Keeper<'_> {
    /// The samples that have the text of this one, which is the first of them.
    fn same(&self, first: usize) -> Vec<usize> {
        std::iter::once(first).chain(self.copies.get(&first).into_iter().flatten().copied()).collect()
    }

    /// The scores of a text for all samples of it.
    fn keep(
        &mut self,
        same: &[usize],
        one: Scored,
        tokens: &TextTokens,
        add: &mut impl FnMut(usize, &SampleScores, &Stats),
    ) {
        for (result, stats) in one.results.iter().zip(&one.stats) {
            for &row in same {
                add(row, &self.rows[row], stats);
                self.tokens.add(self.rows[row].member, tokens);
                self.rows[row].keep(result.clone(), self.columns);
            }
        }
    }

    /// A text that the model failed on. Why is the operator's business.
    fn fail(&mut self, same: &[usize], add: &mut impl FnMut(usize, &SampleScores, &Stats)) {
        let detail = "the model failed on this text; the service's log says why";
        for &row in same {
            add(row, &self.rows[row], &Stats::from([]));
            self.rows[row].fail(TextError::whole("model_failed", detail.to_owned()));
        }
    }
}
