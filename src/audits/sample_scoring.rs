//! Scores the samples of a job: what audits, calibrations and tests have in common.

use super::columns::{Column, ErrorReasons, columns};
use super::control_scoring::{ControlScoring, PairedRound, PairedScored};
use super::error::AuditFailure;
use super::evidence::control_measures;
use super::profiles::OrderedProfile;
use super::request::AuditRequest;
use super::results::{AuditResults, SampleScores};
use super::run_event::RunEvent;
use super::sample_index::SampleIndex;
use super::scoring::{BoundPlan, is_of_one_text};
use super::selected_tokens::{TextTokens, TokenTally, needs_entropies, token_selections};
use super::text_lists::SampleTexts;
use super::tuned_splits::TunedSplits;
use crate::datasets::{Sample, SampleBlocks};
use crate::engine::Stats;
use crate::scorer::{IN_FLIGHT, Plan, Scored, Scorer, ScorerError, TextError, Usage};
use crate::store::StoreError;
use futures::{StreamExt, TryStreamExt};
use mia::methods::dataset_weights;
use mia::statistics::{CONTROL_MEASURES, PriorTestSums};
use std::collections::HashMap;
use std::sync::Arc;

/// Samples that are scored, with what else was gathered of them.
pub struct ScoredSamples {
    pub results: AuditResults,
    pub texts: SampleTexts,
    pub prior: PriorTestSums,
}

/// Scores samples in one round or, with methods that are weighted by what all texts have in common, in two. What is wrong with
/// one sample is part of the results.
pub async fn score_samples(
    request: &AuditRequest,
    samples: &SampleBlocks,
    scorer: &Scorer,
    progress: impl Fn(RunEvent),
) -> Result<ScoredSamples, AuditFailure> {
    let index = SampleIndex::read(samples, columns(&request.methods).len(), scorer.workers(), &progress).await?;
    let step = |step| progress(RunEvent::Tuned(step));
    let tuned = TunedSplits::tune(&request.model, &request.methods, &index, samples, scorer, step).await?;
    let plan = Plan { splits: Arc::clone(&tuned.splits), ..Plan::from(request) };
    let selections = request.metrics.selected_tokens.map_or(Vec::new(), |_| token_selections(&request.methods));
    let binding = BoundPlan::new(scorer, plan, selections).await?;
    let columns = columns(&binding.bound.plan.methods);
    let control = ControlScoring::open(scorer, request, &columns, &index, samples, step).await?;
    progress(RunEvent::Bound { numerics: numerics(&binding, control.as_ref()) });
    let mut profile = OrderedProfile::new(request.metrics.position_profile.clone());
    let labelled = index.rows.iter().any(|row| row.member.is_some());
    let SampleIndex { rows, is_copy, copies, digest, texts, .. } = index;
    let (tokens, reasons) = (TokenTally::default(), ErrorReasons::default());
    let measures = control_measures().map(|method| method.label);
    let mut scores = ScoreTable { columns, rows, reasons, copies, tokens, measures };
    let methods = scores.columns.iter().map(|column| column.method.clone());
    let (later, first): (Vec<_>, Vec<_>) = methods.partition(|method| needs_entropies(&method.method));
    let rounds = if later.is_empty() { 1 } else { 2 };
    let scored = |done: usize| progress(RunEvent::Scored { done: done / rounds });

    let round = PairedRound {
        target: binding.round(first, Arc::new([])),
        control: control.as_ref().map(ControlScoring::round),
    };
    let add = |row: usize, rows: &[SampleScores], stats: &Stats| profile.add(row, rows, Arc::clone(stats));
    let mut usage = scores.round(samples, &is_copy, &round, add, scored).await?;
    let (profile, prior) = profile.finish();
    let mut repeated_passes = 0;
    if rounds == 2 {
        // Now the entropies of all texts are known. The baselines of these methods ran in the first round on the same sequences,
        // so the cache has their statistics, as far as it reaches.
        let round =
            PairedRound { target: binding.round(later, dataset_weights(profile.mean_entropy()).into()), control: None };
        let first_round = scores.rows.len();
        let again = scores.round(samples, &is_copy, &round, |_, _, _| {}, |done| scored(first_round + done)).await?;
        repeated_passes = again.forward_passes;
        usage.add(Usage { tokens: 0, ..again });
    }
    let mut models = binding.bound.infos().into_iter();
    let model = models.next().ok_or_else(|| ScorerError::Internal("an audit is bound to no model".to_owned()))?;
    let most = request.metrics.selected_tokens.unwrap_or(0);
    let text = |id| binding.bound.models[0].tokenizer.piece(id);
    let results = AuditResults {
        selected_tokens: scores.tokens.most_selected(&binding.selections, most, labelled, text),
        columns: scores.columns,
        rows: scores.rows,
        error_reasons: scores.reasons.into_list(),
        dataset_digest: digest,
        profile: profile.rows(),
        group_profiles: profile.group_rows(),
        usage,
        repeated_passes,
        splits: tuned
            .outcomes
            .iter()
            .chain(control.iter().flat_map(|control| &control.tuned.outcomes))
            .cloned()
            .collect(),
        control: control.as_ref().and_then(|control| control.plan.bound.infos().into_iter().next()),
        blind: None,
        comparability: None,
        prior_test: None,
        calibration: None,
        ngram_step: None,
        overflow: request.overflow,
        numerics: binding.bound.numerics(),
        model,
        other_models: models.collect(),
    };
    Ok(ScoredSamples { results, texts, prior })
}

/// Returns everything that the bits of all numbers depend on.
fn numerics(target: &BoundPlan, control: Option<&ControlScoring>) -> String {
    let all = std::iter::once(target.bound.numerics()).chain(control.map(|control| control.plan.bound.numerics()));
    all.collect::<Vec<_>>().join("; control ")
}

/// The scores of all samples, as far as they are known.
struct ScoreTable {
    columns: Vec<Column>,
    rows: Vec<SampleScores>,
    reasons: ErrorReasons,
    /// The samples with the text of an earlier one, by that: a text is scored once.
    copies: HashMap<usize, Vec<usize>>,
    /// The tokens that methods select.
    tokens: TokenTally,
    /// Labels of the control's own measures.
    measures: [Arc<str>; CONTROL_MEASURES],
}

impl ScoreTable {
    /// Scores every sample by the methods of one round, keeps the scores in their columns, and gives `add` the statistics of
    /// each sample once. What one sample fails of is an error of that sample, unless as many as run at a time fail before
    /// any is scored, or all do.
    async fn round(
        &mut self,
        samples: &SampleBlocks,
        is_copy: &[bool],
        round: &PairedRound<'_>,
        mut add: impl FnMut(usize, &[SampleScores], &Stats),
        progress: impl Fn(usize),
    ) -> Result<Usage, AuditFailure> {
        let (mut usage, mut done, mut scored, mut failed, mut failure) = (Usage::default(), 0, 0, 0, None);
        let firsts = samples.samples().try_filter(|(row, _)| std::future::ready(!is_copy[*row]));
        let one = |read: Result<(usize, Sample), StoreError>| async move {
            let (row, sample) = read?;
            Ok::<_, AuditFailure>((row, round.score(sample.into_input()).await))
        };
        let mut texts = std::pin::pin!(firsts.map(one).buffered(IN_FLIGHT));
        while let Some((row, one)) = texts.try_next().await? {
            let same = self.same(row);
            done += same.len();
            match one {
                Ok(PairedScored { target, tokens, control }) => {
                    scored += 1;
                    usage.add(Usage { tokens: target.usage.tokens * same.len(), ..target.usage });
                    self.keep(&same, target, &tokens, &mut add)?;
                    if let Some(control) = control {
                        usage.add(Usage { tokens: 0, ..control.usage });
                        self.keep_control(&same, control);
                    }
                }
                Err(error) if is_of_one_text(&error) => {
                    tracing::error!(sample = row, %error, "the model failed on a sample of an audit");
                    self.fail(&same, &mut add)?;
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

    /// The samples that have the text of this one, which is the first of them.
    fn same(&self, first: usize) -> Vec<usize> {
        std::iter::once(first).chain(self.copies.get(&first).into_iter().flatten().copied()).collect()
    }

    /// Stores the scores of a text in all samples of it.
    fn keep(
        &mut self,
        same: &[usize],
        one: Scored,
        tokens: &TextTokens,
        add: &mut impl FnMut(usize, &[SampleScores], &Stats),
    ) -> Result<(), AuditFailure> {
        for (result, stats) in one.results.iter().zip(&one.stats) {
            for &row in same {
                add(row, &self.rows, stats);
                self.tokens.add(self.rows[row].member, tokens);
                self.rows[row].keep(result.clone(), &self.columns, &mut self.reasons)?;
            }
        }
        Ok(())
    }

    /// Stores the control's scores of a text in all samples of it.
    fn keep_control(&mut self, same: &[usize], control: Scored) {
        for result in control.results {
            for &row in same {
                self.rows[row].keep_control(result.clone(), &self.columns, &self.measures);
            }
        }
    }

    /// Notes that the model failed on a text. Why is the operator's business.
    fn fail(
        &mut self,
        same: &[usize],
        add: &mut impl FnMut(usize, &[SampleScores], &Stats),
    ) -> Result<(), AuditFailure> {
        for error in self.reasons.row_errors(vec![TextError::model_failed()], &self.columns)? {
            for &row in same {
                add(row, &self.rows, &Stats::from([]));
                self.rows[row].fail(error);
            }
        }
        Ok(())
    }
}
