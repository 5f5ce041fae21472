//! A fine-tune from texts to the files of an adapter, and one on the device of a model that is served: it takes memory from the
//! models there, and gives way to scoring.

use super::error::FinetuneError;
use super::request::{FEWEST_TEXTS, FinetuneRequest};
use crate::engine::{Engine, MemoryReservation, MemoryShortage};
use crate::pool::{Model, Origin};
use crate::retry::until_final;
use candle_core::Device;
use lm::models::ModelError;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;
use lm::models::lora::{TUNED_ON, TunedOn, adapter_digest};
use lm::models::tuning::{StepReport, Tuner, TuningError, tuning_bytes};
use lm::panics::panic_message;
use lm::tokenizer::{self, Tokenizer};
use mia::texts::cluster_digest;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The model that is tuned.
#[derive(Clone, Debug)]
pub struct TuningBase {
    pub files: ModelFiles,
    /// Where they come from, by which the adapter names it.
    pub origin: Origin,
    pub device: Device,
}

pub struct Finetuned {
    /// Names and contents of the adapter's files: those that PEFT reads, and the digests of the texts.
    pub files: Vec<(&'static str, Vec<u8>)>,
    /// SHA-256 over the files that PEFT reads.
    pub digest: String,
    /// Result of every step.
    pub steps: Vec<StepReport>,
}

/// Observer of a fine-tune, which may end it.
pub trait TuningObserver {
    /// Is called before each part of a step, and may take its time.
    fn before_part(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Called after each of `steps` steps.
    fn after_step(&mut self, step: &StepReport, steps: usize);
}

/// Tunes an adapter of the model on the texts.
pub fn run(
    request: &FinetuneRequest,
    base: &TuningBase,
    texts: &[impl AsRef<str>],
    observer: &mut impl TuningObserver,
) -> Result<Finetuned, FinetuneError> {
    let faults = request.faults();
    if !faults.is_empty() {
        return Err(FinetuneError::Settings(faults));
    }
    if texts.len() < FEWEST_TEXTS {
        return Err(FinetuneError::TooFew { found: texts.len(), fewest: FEWEST_TEXTS });
    }
    let files = &base.files;
    let stamp = files.stamp()?;
    let mut tuner = files.read_unchanged(&stamp, || {
        let (tokenizer, _) = tokenizer::from_files(|name| files.find(name).map_err(FinetuneError::Model))?;
        let ids = token_ids(&tokenizer, texts)?;
        let tuner = Tuner::new(&Checkpoint::open(files)?, &base.device, &request.tuning(&base.origin), ids);
        tuner.map_err(FinetuneError::from)
    })?;
    let mut steps = Vec::with_capacity(tuner.steps());
    while let Some(step) = tuner.step(&mut || observer.before_part())? {
        steps.push(step);
        observer.after_step(&step, tuner.steps());
    }
    let [(config, settings), (tensors, content)] = tuner.files()?;
    let digest = adapter_digest(&settings, &content);
    let files = vec![(config, settings), (tensors, content), (TUNED_ON, tuned_on(texts)?)];
    Ok(Finetuned { files, digest, steps })
}

/// Bytes of the device's memory that the fine-tune takes, by estimate.
///
/// # Errors
/// Where the files of the model cannot be used.
pub fn memory(request: &FinetuneRequest, base: &TuningBase) -> Result<u64, FinetuneError> {
    let checkpoint = Checkpoint::open(&base.files)?;
    Ok(tuning_bytes(&checkpoint, &base.device, &request.tuning(&base.origin)))
}

/// The texts in the ids of the model.
fn token_ids(tokenizer: &Tokenizer, texts: &[impl AsRef<str>]) -> Result<Vec<Vec<u32>>, FinetuneError> {
    let encoded = texts.iter().enumerate().map(|(index, text)| {
        let encoded = tokenizer.encode(text.as_ref()).map_err(|error| FinetuneError::Tokenizer { index, error })?;
        match encoded.ids.len() {
            tokens @ 0..=1 => Err(FinetuneError::TooShort { index, tokens }),
            _ => Ok(encoded.ids.to_vec()),
        }
    });
    encoded.collect()
}

/// The file that says which texts an adapter was tuned on, each once and in the order of their digests.
fn tuned_on(texts: &[impl AsRef<str>]) -> Result<Vec<u8>, FinetuneError> {
    let mut digests: Vec<_> = texts.iter().map(|text| cluster_digest(text.as_ref())).collect();
    digests.sort_unstable();
    digests.dedup();
    serde_json::to_vec(&TunedOn { texts: digests }).map_err(|error| FinetuneError::Unwritable(error.to_string()))
}

/// Interval at which a step that gives way checks whether it may go on.
const LOOK: Duration = Duration::from_millis(5);
/// The longest that a part of a step gives way. Interactive requests that never end must not stop a fine-tune for ever.
const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// A fine-tune that is about to run.
pub struct TuningRun {
    pub engine: Engine,
    /// The model to tune, opened.
    pub model: Arc<Model>,
    pub request: FinetuneRequest,
    pub texts: Vec<String>,
}

impl TuningRun {
    /// Tunes on threads of its own. Before each part of a step, which is some 2,048 tokens or one text, interactive requests
    /// go first. Dropping the future stops it before its next part.
    pub async fn run(
        self,
        on_step: impl FnMut(&StepReport, usize) + Send + 'static,
    ) -> Result<Finetuned, FinetuneError> {
        // Models that the service waits for come first; one that fails to load is no reason not to tune another.
        self.engine.wait_for_eager_loads().await;
        let base = self.base()?;
        let memory = self.reserved(&base).await?;
        let stop = CancellationToken::new();
        let _stopped = stop.clone().drop_guard();
        let tuning = tokio::task::spawn_blocking(move || {
            let tuned = self.tune(&base, on_step, &stop);
            drop(memory);
            tuned
        });
        tuning.await.map_err(|error| FinetuneError::Panicked(error.to_string()))?
    }

    fn base(&self) -> Result<TuningBase, FinetuneError> {
        let declared = self.engine.pool().find(Some(self.model.id()))?;
        if self.model.is_streamed() {
            let reason =
                format!("a fine-tune needs all layers of model `{}` in memory, and they are streamed", self.model.id());
            return Err(TuningError::Unsupported(reason).into());
        }
        let here = self.model.local()?;
        let (files, device) = (here.files.clone(), here.place.device.clone());
        Ok(TuningBase { files, origin: declared.origin.clone(), device })
    }

    /// The memory that it takes, once other fine-tunes have given back theirs.
    async fn reserved(&self, base: &TuningBase) -> Result<MemoryReservation, FinetuneError> {
        let (request, opened) = (self.request.clone(), base.clone());
        let needed = tokio::task::spawn_blocking(move || memory(&request, &opened)).await;
        let needed = needed.map_err(|error| FinetuneError::Panicked(error.to_string()))??;
        let no_device = || ModelError::Device(format!("model `{}` has no device", self.model.id()));
        let place = self.model.devices.first().copied().ok_or_else(no_device)?;
        let reserve = || async { self.engine.reserve_memory(place, needed) };
        Ok(until_final(MemoryShortage::passes, reserve).await?)
    }

    fn tune(
        self,
        base: &TuningBase,
        on_step: impl FnMut(&StepReport, usize) + Send,
        stop: &CancellationToken,
    ) -> Result<Finetuned, FinetuneError> {
        let Self { engine, model, request, texts } = self;
        let here = model.local()?;
        let threads = rayon::ThreadPoolBuilder::new().num_threads(here.place.threads).build();
        let threads = threads.map_err(|error| FinetuneError::Panicked(error.to_string()))?;
        let mut observer = Follower { engine, stop, on_step };
        let tune = || threads.install(|| run(&request, base, &texts, &mut observer));
        let tuned = catch_unwind(AssertUnwindSafe(tune));
        let tuned =
            tuned.unwrap_or_else(|payload| Err(FinetuneError::Panicked(panic_message(&*payload).to_owned())))?;
        // Otherwise the adapter would be said to belong to the files of before.
        if here.files.stamp()? != here.stamp {
            return Err(FinetuneError::ModelChanged(model.id().to_owned()));
        }
        Ok(tuned)
    }
}

/// Gives way to interactive requests, and hands on what becomes of the steps.
struct Follower<'a, F> {
    engine: Engine,
    stop: &'a CancellationToken,
    on_step: F,
}

impl<F: FnMut(&StepReport, usize)> TuningObserver for Follower<'_, F> {
    fn before_part(&mut self) -> ControlFlow<()> {
        let began = Instant::now();
        while self.engine.has_interactive_work() && !self.stop.is_cancelled() && began.elapsed() < LONGEST_WAIT {
            std::thread::sleep(LOOK);
        }
        if self.stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn after_step(&mut self, step: &StepReport, steps: usize) {
        (self.on_step)(step, steps);
    }
}
