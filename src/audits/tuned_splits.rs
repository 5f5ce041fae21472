//! The models that an audit tunes on a share of its own texts, for `fsd`. They are there as long as the audit runs.

use super::error::AuditFailure;
use super::request::AuditRequest;
use super::split::{SplitSample, left_out};
use crate::datasets::{Sample, SampleBlocks};
use crate::finetunes::{FinetuneRequest, TuningRun};
use crate::methods::{Fault, LabelledMethod, Split};
use crate::models::files::ModelFiles;
use crate::models::tuning::{LoraSettings, OptimizerSettings, StepReport};
use crate::pool::{AdapterDeclaration, AdapterError, AdapterSource, Model, OpenError, Pool, Retry, adapted_id};
use crate::retry::until_final;
use crate::scorer::{Scorer, ScorerError, TunedSplit};
use crate::texts::{TextDigest, cluster_digest};
use futures::TryStreamExt;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use utoipa::ToSchema;

/// How often the progress of a tuning is told.
const LOOK: Duration = Duration::from_millis(250);
/// How many characters of an adapter's digest its name has.
const NAME_DIGITS: usize = 12;

/// How far the tuning of an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TuningProgress {
    pub seed: u64,
    pub step: usize,
    pub steps: usize,
    pub loss: f64,
}

/// What became of the tuning on one share of an audit's texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SplitOutcome {
    /// The share of the texts that was left out of scoring.
    pub split: f64,
    /// Seed of the split and of the tuning.
    pub seed: u64,
    /// SHA-256 of the adapter.
    pub adapter: String,
    /// Samples that were left out of scoring.
    pub left_out: usize,
    /// Texts that the model was tuned on: the non-members among those, each once.
    pub tuned_on: usize,
    /// Steps of the tuning.
    pub steps: usize,
    /// Loss of the first step.
    pub first_loss: f64,
    /// Loss of the last step.
    pub last_loss: f64,
}

/// The tuned models of an audit.
pub struct TunedSplits {
    pub splits: Arc<[TunedSplit]>,
    pub outcomes: Vec<SplitOutcome>,
    /// The tuned models, which stay open.
    held: Vec<Arc<Model>>,
    pool: Pool,
}

impl Drop for TunedSplits {
    fn drop(&mut self) {
        self.held.clear();
        for split in &*self.splits {
            if let Some((base, name)) = split.adapter.split_once(':')
                && let Err(error) = self.pool.remove_adapter(base, name)
            {
                // Another audit has the same.
                tracing::debug!(adapter = &*split.adapter, %error, "a tuned adapter stays for now");
            }
        }
    }
}

impl TunedSplits {
    /// Tunes the model once for each split that the methods name.
    ///
    /// # Errors
    /// [`AuditFailure`]
    pub async fn tune(
        request: &AuditRequest,
        samples: &SampleBlocks,
        scorer: &Scorer,
        progress: impl Fn(TuningProgress),
    ) -> Result<Self, AuditFailure> {
        let mut tuned =
            Self { splits: Arc::new([]), outcomes: Vec::new(), held: Vec::new(), pool: scorer.pool().clone() };
        let wanted = splits(&request.methods);
        if wanted.is_empty() {
            return Ok(tuned);
        }
        let rows: Vec<SplitSample> =
            samples.samples().map_ok(|(_, sample)| SplitSample::from(&sample)).try_collect().await?;
        for split in wanted {
            let out = left_out(&rows, split);
            let texts = tuning_texts(samples, &out).await?;
            let (adapter, outcome) = tuned.tune_one(&request.model, split, texts, scorer, &progress).await?;
            let left_out = rows.iter().filter(|row| out.contains(&row.cluster)).count();
            tuned.outcomes.push(SplitOutcome { left_out, ..outcome });
            let adapted = TunedSplit { split, adapter: adapter.id().into(), left_out: Arc::new(out) };
            tuned.splits = tuned.splits.iter().cloned().chain([adapted]).collect();
            tuned.held.push(adapter);
        }
        Ok(tuned)
    }

    async fn tune_one(
        &self,
        model: &str,
        split: Split,
        texts: Vec<String>,
        scorer: &Scorer,
        progress: &impl Fn(TuningProgress),
    ) -> Result<(Arc<Model>, SplitOutcome), AuditFailure> {
        let tuned_on = texts.len();
        let open = || async { Ok(self.pool.open(model, Retry::AfterPause).await.map_err(ScorerError::from)?) };
        let opened = until_final(AuditFailure::is_retryable, open).await?;
        let request = FinetuneRequest {
            model: model.to_owned(),
            name: String::new(),
            lora: LoraSettings::default(),
            optimizer: OptimizerSettings::default(),
            seed: split.seed,
        };
        let run = TuningRun { engine: scorer.engine().clone(), model: opened, request, texts };
        let last = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&last);
        let on_step = move |step: &StepReport, steps: usize| {
            let StepReport { step, loss, .. } = *step;
            *noted.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(TuningProgress { seed: split.seed, step, steps, loss });
        };
        let mut tuning = pin!(run.run(on_step));
        let tuned = loop {
            tokio::select! {
                tuned = &mut tuning => break tuned?,
                () = tokio::time::sleep(LOOK) => {
                    if let Some(step) = *last.lock().unwrap_or_else(PoisonError::into_inner) {
                        progress(step);
                    }
                }
            }
        };
        let digest = tuned.digest.clone();
        let hex = digest.rsplit(':').next().unwrap_or_default();
        let name = format!("fsd-{}", hex.get(..NAME_DIGITS).unwrap_or(hex));
        let loss = |step: Option<&StepReport>| step.map_or(0.0, |step| step.loss);
        let outcome = SplitOutcome {
            split: split.share.get(),
            seed: split.seed,
            adapter: digest,
            left_out: 0,
            tuned_on,
            steps: tuned.steps.len(),
            first_loss: loss(tuned.steps.first()),
            last_loss: loss(tuned.steps.last()),
        };
        let files: Vec<(String, Vec<u8>)> =
            tuned.files.into_iter().map(|(name, content)| (name.to_owned(), content)).collect();
        Ok((self.adapted(model, &name, ModelFiles::Memory(files.into())).await?, outcome))
    }

    /// The model under an adapter of these files. Another audit may have made the same, and may take it away when it ends.
    async fn adapted(&self, model: &str, name: &str, files: ModelFiles) -> Result<Arc<Model>, AuditFailure> {
        loop {
            let source = AdapterSource::Files(files.clone());
            match self.pool.add_adapter(model, AdapterDeclaration { name: name.to_owned(), source }) {
                Ok(()) | Err(AdapterError::Taken(_)) => {}
                Err(error) => return Err(ScorerError::Unopened(error.into()).into()),
            }
            match self.pool.open(&adapted_id(model, name), Retry::AfterPause).await {
                Err(OpenError::Adapter(AdapterError::Unknown { .. })) => {}
                opened => return Ok(opened.map_err(ScorerError::from)?),
            }
        }
    }
}

/// What is wrong with methods that tune on a share of the samples where these have no labels, with pointers relative to the methods.
#[must_use]
pub fn split_faults(methods: &[LabelledMethod], labelled: bool) -> Vec<Fault> {
    let tuning = methods.iter().filter(|method| !labelled && method.method.split().is_some());
    let detail = "the samples are without labels, so none is known to be a non-member that the model can be tuned on";
    let mut faults: Vec<Fault> = tuning.map(|method| Fault::new(method.pointer("split"), detail)).collect();
    // A list of seeds has the same fault for each.
    faults.dedup_by(|a, b| a.pointer == b.pointer);
    faults
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

/// The non-members that are left out, one text of each cluster.
async fn tuning_texts(samples: &SampleBlocks, left_out: &HashSet<TextDigest>) -> Result<Vec<String>, AuditFailure> {
    let (mut texts, mut known) = (Vec::new(), HashSet::new());
    let mut samples = pin!(samples.samples());
    while let Some((_, sample)) = samples.try_next().await? {
        let cluster = cluster_digest(&sample.text);
        if is_tuned_on(&sample) && left_out.contains(&cluster) && known.insert(cluster) {
            texts.push(sample.text);
        }
    }
    Ok(texts)
}

fn is_tuned_on(sample: &Sample) -> bool {
    sample.is_member() == Some(false)
}
