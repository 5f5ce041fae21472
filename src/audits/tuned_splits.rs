//! The models that an audit tunes on a share of its own texts, for `fsd`. They are there as long as the audit runs.

use super::error::AuditFailure;
use super::findings::SplitOutcome;
use super::results::SampleScores;
use super::run_event::TuningProgress;
use super::sample_index::SampleIndex;
use crate::datasets::SampleBlocks;
use crate::finetunes::{FinetuneError, FinetuneRequest, Finetuned, MOST_BYTES, TuningRun};
use crate::pool::{AdapterDeclaration, AdapterError, AdapterSource, Model, OpenError, Pool, Retry, adapted_id};
use crate::retry::{Pauses, until_final};
use crate::scorer::{Scorer, ScorerError, TunedSplit};
use futures::TryStreamExt;
use indexmap::IndexMap;
use lm::models::files::ModelFiles;
use lm::models::tuning::{LoraSettings, OptimizerSettings, StepReport};
use mia::methods::{LabelledMethod, Split};
use mia::random::{shuffle, stream};
use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::watch;

/// Stands in no name that a client or the settings may give an adapter.
const MARK: char = '~';
/// Number of characters of an adapter's digest in its name.
const NAME_DIGITS: usize = 12;

/// The tuned models of an audit.
pub struct TunedSplits {
    pub splits: Arc<[TunedSplit]>,
    pub outcomes: Vec<SplitOutcome>,
    /// The tuned models, which stay open.
    held: Vec<Arc<Model>>,
    /// Their adapters, which go with this.
    guard: AdapterGuard,
}

/// Adapters that are removed from the pool when this is dropped.
struct AdapterGuard {
    pool: Pool,
    model: String,
    names: Vec<String>,
}

impl Drop for AdapterGuard {
    fn drop(&mut self) {
        let (pool, model, mut names) =
            (self.pool.clone(), std::mem::take(&mut self.model), std::mem::take(&mut self.names));
        // The last batch may run still, or another audit has tuned the same; without a runtime the process ends.
        let mut in_use = move || {
            names.retain(|name| matches!(pool.remove_adapter(&model, name), Err(AdapterError::InUse(_))));
            !names.is_empty()
        };
        if let (true, Ok(runtime)) = (in_use(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let mut pauses = Pauses::default();
                while in_use() {
                    tokio::time::sleep(pauses.next_pause()).await;
                }
            });
        }
    }
}

impl TunedSplits {
    /// Tunes the model of this id once for each split that the methods name.
    pub async fn tune(
        model: &str,
        methods: &[LabelledMethod],
        index: &SampleIndex,
        samples: &SampleBlocks,
        scorer: &Scorer,
        progress: impl Fn(TuningProgress),
    ) -> Result<Self, AuditFailure> {
        let guard = AdapterGuard { pool: scorer.pool().clone(), model: model.to_owned(), names: Vec::new() };
        let mut tuned = Self { splits: Arc::new([]), outcomes: Vec::new(), held: Vec::new(), guard };
        let wanted = splits(methods);
        if wanted.is_empty() {
            return Ok(tuned);
        }
        let open = || async { Ok(scorer.pool().open(model, Retry::AfterPause).await.map_err(ScorerError::from)?) };
        let base = until_final(AuditFailure::is_retryable, open).await?;
        let (rows, groups) = (&index.rows, Arc::new(grouped_clusters(&index.rows)));
        for split in wanted {
            let groups = Arc::clone(&groups);
            let clusters = scorer.workers().run_behind(move |_| left_out(&groups, split)).await?;
            let is_out = |row: usize| rows[row].cluster.is_some_and(|cluster| clusters.contains(&cluster));
            let out: Vec<usize> = (0..rows.len()).filter(|row| is_out(*row)).collect();
            let texts = tuning_texts(samples, index, &out, &base).await?;
            let tuned_on = texts.len();
            let finetuned = tune_one(&base, split, texts, scorer, &progress).await?;
            let (Some(first), Some(last)) = (finetuned.steps.first(), finetuned.steps.last()) else {
                return Err(ScorerError::Internal("a model was tuned in no step".to_owned()).into());
            };
            tuned.outcomes.push(SplitOutcome {
                model: model.to_owned(),
                split: split.share.get(),
                seed: split.seed,
                adapter: finetuned.digest.clone(),
                left_out: out.len(),
                tuned_on,
                steps: finetuned.steps.len(),
                first_loss: first.loss,
                last_loss: last.loss,
            });
            let adapted = tuned.hold(finetuned).await?;
            let left_out = Arc::new(out.into_iter().map(|row| index.normalized[row]).collect());
            let adapted = TunedSplit { split, adapter: adapted.id().into(), left_out };
            tuned.splits = tuned.splits.iter().cloned().chain([adapted]).collect();
        }
        Ok(tuned)
    }

    /// Opens the model under what was tuned. Another audit may have made the same, and may take it away when it ends.
    async fn hold(&mut self, tuned: Finetuned) -> Result<Arc<Model>, AuditFailure> {
        let hex = tuned.digest.rsplit(':').next().unwrap_or_default();
        let name = format!("fsd{MARK}{}", hex.get(..NAME_DIGITS).unwrap_or(hex));
        self.guard.names.push(name.clone());
        let files: Vec<(String, Vec<u8>)> =
            tuned.files.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
        let files = ModelFiles::Memory(files.into());
        let AdapterGuard { pool, model, .. } = &self.guard;
        loop {
            let source = AdapterSource::Files(files.clone());
            match pool.add_adapter(model, AdapterDeclaration { name: name.clone(), source }) {
                Ok(()) | Err(AdapterError::Taken(_)) => {}
                Err(error) => return Err(ScorerError::Unopened(error.into()).into()),
            }
            match pool.open(&adapted_id(model, &name), Retry::AfterPause).await {
                Err(OpenError::Adapter(AdapterError::Unknown { .. })) => {}
                opened => {
                    let adapted = opened.map_err(ScorerError::from)?;
                    self.held.push(Arc::clone(&adapted));
                    return Ok(adapted);
                }
            }
        }
    }
}

/// Tunes the model on these texts, as FSD was published with, and tells every step.
async fn tune_one(
    base: &Arc<Model>,
    split: Split,
    texts: Vec<String>,
    scorer: &Scorer,
    progress: &impl Fn(TuningProgress),
) -> Result<Finetuned, AuditFailure> {
    let request = FinetuneRequest {
        model: base.id().to_owned(),
        // The adapter is named by its digest, which is not known yet.
        name: String::new(),
        lora: LoraSettings::default(),
        optimizer: OptimizerSettings::default(),
        seed: split.seed,
    };
    let run = TuningRun { engine: scorer.engine().clone(), model: Arc::clone(base), request, texts };
    let (told, mut steps) = watch::channel(None);
    let on_step = move |step: &StepReport, steps: usize| {
        let StepReport { step, loss, .. } = *step;
        told.send_replace(Some(TuningProgress { seed: split.seed, step, steps, loss }));
    };
    let mut tuning = pin!(run.run(on_step));
    loop {
        tokio::select! {
            tuned = &mut tuning => return Ok(tuned?),
            Ok(()) = steps.changed() => {
                if let Some(step) = *steps.borrow_and_update() {
                    progress(step);
                }
            }
        }
    }
}

/// The splits that methods name, each once.
fn splits(methods: &[LabelledMethod]) -> Vec<Split> {
    let mut splits = Vec::new();
    for split in methods.iter().filter_map(|method| method.method.split()) {
        if !splits.contains(&split) {
            splits.push(split);
        }
    }
    splits
}

/// The non-members among the samples at these places, in order, each text once. A text without two tokens has nothing to learn
/// from.
async fn tuning_texts(
    samples: &SampleBlocks,
    index: &SampleIndex,
    places: &[usize],
    base: &Model,
) -> Result<Vec<String>, AuditFailure> {
    let (mut texts, mut known, mut bytes) = (Vec::new(), HashSet::new(), 0);
    let (mut places, mut samples) = (places.iter().peekable(), pin!(samples.samples()));
    while let Some((row, sample)) = samples.try_next().await? {
        if places.next_if(|place| **place == row).is_none() {
            continue;
        }
        let is_fit = || base.tokenizer.encode(&sample.text).is_ok_and(|encoded| encoded.ids.len() > 1);
        if sample.is_member() == Some(false) && !known.contains(&index.normalized[row]) && is_fit() {
            known.insert(index.normalized[row]);
            bytes += sample.text.len() as u64;
            texts.push(sample.text);
        }
        if bytes > MOST_BYTES {
            return Err(FinetuneError::TooManyBytes(MOST_BYTES).into());
        }
    }
    Ok(texts)
}

/// The clusters of each group. A cluster is in the group of its first text.
fn grouped_clusters(rows: &[SampleScores]) -> IndexMap<Option<String>, Vec<usize>> {
    let (mut groups, mut known) = (IndexMap::<Option<String>, Vec<usize>>::new(), HashSet::new());
    for SampleScores { cluster, group, .. } in rows {
        let Some(cluster) = cluster.filter(|cluster| known.insert(*cluster)) else { continue };
        groups.entry(group.clone()).or_default().push(cluster);
    }
    groups
}

/// The clusters that are left out: of the clusters of each group, in an order that the seed decides, as many as the share comes to,
/// rounded.
fn left_out(groups: &IndexMap<Option<String>, Vec<usize>>, split: Split) -> HashSet<usize> {
    let chosen = groups.iter().flat_map(|(group, clusters)| {
        let (mut clusters, purpose) = (clusters.clone(), format!("split {}", group.as_deref().unwrap_or_default()));
        shuffle(&mut clusters, &mut stream(split.seed, &purpose));
        let count = (clusters.len() as f64 * split.share.get()).round() as usize;
        clusters.into_iter().take(count)
    });
    chosen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mia::methods::Fraction;

    fn sample(cluster: usize, group: Option<&str>) -> SampleScores {
        SampleScores { cluster: Some(cluster), group: group.map(str::to_owned), ..SampleScores::default() }
    }

    fn out(samples: &[SampleScores], share: f64, seed: u64) -> HashSet<usize> {
        left_out(&grouped_clusters(samples), Split { share: Fraction::new(share).unwrap(), seed })
    }

    #[test]
    fn a_share_of_every_group_is_left_out_and_clusters_stay_together() {
        let mut samples: Vec<SampleScores> =
            (0..100).map(|i| sample(i, Some(if i < 60 { "a" } else { "b" }))).collect();
        // Texts of a cluster go with the first of them.
        samples.extend((0..30).map(|i| sample(i, Some("b"))));
        let left_out = out(&samples, 0.3, 42);
        let is_out = |sample: &&SampleScores| sample.cluster.is_some_and(|cluster| left_out.contains(&cluster));
        let count = |range: std::ops::Range<usize>| samples[range].iter().filter(is_out).count();
        assert_eq!((left_out.len(), count(0..60), count(60..100)), (30, 18, 12));
        assert_eq!(count(0..30), count(100..130));
        assert_eq!(left_out, out(&samples, 0.3, 42));
        assert_ne!(left_out, out(&samples, 0.3, 43));
    }

    #[test]
    fn the_order_is_that_of_the_seed_alone() {
        let samples: Vec<SampleScores> = (0..1_000).map(|i| sample(i, None)).collect();
        let share = |seed| {
            let left_out = out(&samples, 0.5, seed);
            (0..500).filter(|cluster| left_out.contains(cluster)).count()
        };
        // 250 on average, with a standard deviation of 7.9.
        assert!((0..20).all(|seed| (215..=285).contains(&share(seed))));
    }
}
