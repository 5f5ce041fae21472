//! A fine-tune on the device of a model that is served: it takes memory from the models there, and gives way to scoring.

use super::error::FinetuneError;
use super::request::FinetuneRequest;
use super::run::{Finetuned, TuningBase, TuningObserver, memory, run};
use crate::engine::Engine;
use crate::models::tuning::StepReport;
use crate::pool::Model;
use crate::telemetry::panic_message;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// How often a step that gives way looks whether it may go on.
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
    /// go first. Dropping the future stops it after the step that it is at.
    ///
    /// # Errors
    /// [`FinetuneError`]
    pub async fn run(
        self,
        on_step: impl FnMut(&StepReport, usize) + Send + 'static,
    ) -> Result<Finetuned, FinetuneError> {
        let stop = CancellationToken::new();
        let _stopped = stop.clone().drop_guard();
        let tuning = tokio::task::spawn_blocking(move || self.tune(on_step, &stop));
        tuning.await.map_err(|error| FinetuneError::Panicked(error.to_string()))?
    }

    fn tune(
        self,
        on_step: impl FnMut(&StepReport, usize) + Send,
        stop: &CancellationToken,
    ) -> Result<Finetuned, FinetuneError> {
        let Self { engine, model, request, texts } = self;
        let declared = engine.pool().find(Some(model.id())).map_err(FinetuneError::NoModel)?;
        let device = model.place.device.clone();
        let base = TuningBase { files: model.files.clone(), origin: declared.origin.clone(), device };
        let place = model.devices.first().copied().unwrap_or_default();
        let _memory = engine.reserve_memory(place, memory(&request, &base)?)?;
        let threads = rayon::ThreadPoolBuilder::new().num_threads(model.place.threads).build();
        let threads = threads.map_err(|error| FinetuneError::Panicked(error.to_string()))?;
        let mut observer = Follower { engine, stop, on_step };
        let tuned = catch_unwind(AssertUnwindSafe(|| threads.install(|| run(&request, &base, &texts, &mut observer))));
        tuned.unwrap_or_else(|payload| Err(FinetuneError::Panicked(panic_message(&*payload).to_owned())))
    }
}

/// Gives way to interactive requests, and hands on what becomes of the steps.
struct Follower<'a, F> {
    engine: Engine,
    stop: &'a CancellationToken,
    on_step: F,
}

impl<F: FnMut(&StepReport, usize)> TuningObserver for Follower<'_, F> {
    fn before_part(&mut self) {
        let began = Instant::now();
        while self.engine.has_interactive_work() && !self.stop.is_cancelled() && began.elapsed() < LONGEST_WAIT {
            std::thread::sleep(LOOK);
        }
    }

    fn after_step(&mut self, step: &StepReport, steps: usize) -> ControlFlow<()> {
        (self.on_step)(step, steps);
        if self.stop.is_cancelled() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
