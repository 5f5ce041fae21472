//! A fine-tune on the device of a model that is served: it takes memory from the models there, and gives way to scoring.

use super::error::FinetuneError;
use super::request::FinetuneRequest;
use super::run::{Finetuned, TuningBase, TuningObserver, memory, run};
use crate::engine::{Engine, MemoryReservation, MemoryShortage};
use crate::pool::Model;
use crate::retry::until_final;
use lm::models::ModelError;
use lm::models::tuning::StepReport;
use lm::panics::panic_message;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

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
        let _ = self.engine.wait_until_loaded().await;
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
