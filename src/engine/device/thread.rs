//! The thread itself: which step comes next, and how a batch is run.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

use super::memory::fits;
use super::resident::ResidentModel;
use super::trial::BudgetChoice;
use crate::engine::error::{EngineError, StartError};
use crate::engine::failure::Failure;
use crate::engine::queue::{QueuedPass, halve};
use crate::engine::request::Answer;
use crate::engine::scheduler::{Holdings, Seat, Step};
use crate::engine::settings::{DeviceSlot, SpeedCalibration};
use crate::engine::shared::Shared;
use crate::pool::{Model, base_id};
use crate::telemetry::panic_message;

/// Starts the thread of the device at `index`.
pub(in crate::engine) fn spawn(
    index: usize,
    slot: DeviceSlot,
    shared: Arc<Shared>,
) -> Result<JoinHandle<()>, StartError> {
    let prefix = slot.name.clone();
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(slot.threads)
        .thread_name(move |thread| format!("{prefix}-{thread}"))
        .build()
        .map_err(|error| StartError(error.to_string()))?;
    let builder = Builder::new().name(slot.name.clone());
    let work = move || {
        // The models are made, used and dropped on the pool's one thread that runs this closure.
        let run = || Device::new(index, slot, &shared).run();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| pool.install(run))) {
            let reason = format!("the device thread panicked: {}", panic_message(&*panic));
            shared.lose_device(index, &reason);
        }
        shared.end_thread(index);
    };
    builder.spawn(work).map_err(|error| StartError(error.to_string()))
}

pub(super) struct Device<'a> {
    pub(super) name: String,
    pub(super) calibration: Option<SpeedCalibration>,
    /// The budgets of models that were here, by identity.
    pub(super) budgets: HashMap<Arc<str>, BudgetChoice>,
    pub(super) trim: Box<dyn Fn() + Send>,
    pub(super) seat: Seat,
    pub(super) residents: Residents,
    pub(super) shared: &'a Shared,
}

/// The models that the device holds, and the memory they share.
pub(super) struct Residents {
    pub(super) models: BTreeMap<Arc<str>, ResidentModel>,
    /// How many bytes they may take, with what is reserved.
    pub(super) memory: u64,
    /// How many bytes of that are reserved for something else.
    pub(super) reservations: Arc<AtomicU64>,
    /// How many of them there were when the batches were last fitted.
    pub(super) fitted_beside: u64,
    /// The token budget of a batch where none was measured.
    pub(super) max_batch_tokens: usize,
}

impl Residents {
    /// Bytes of their weights.
    pub(super) fn weight_bytes(&self) -> u64 {
        self.models.values().map(|resident| resident.model().weight_bytes).fold(0, u64::saturating_add)
    }

    /// How many bytes they may take now.
    pub(super) fn memory(&self) -> u64 {
        self.memory.saturating_sub(self.reserved())
    }

    /// How many bytes are reserved for something else.
    pub(super) fn reserved(&self) -> u64 {
        self.reservations.load(Ordering::Acquire)
    }

    /// Bytes beside the weights.
    pub(super) fn room(&self) -> u64 {
        self.memory().saturating_sub(self.weight_bytes())
    }
}

impl Holdings for Residents {
    fn budget(&self, model: &str) -> usize {
        self.models.get(base_id(model)).map_or(1, ResidentModel::budget)
    }

    fn has_room_for(&self, model: &Model) -> bool {
        let all = || self.models.values().map(|resident| &**resident.model()).chain([model]);
        fits(
            all().map(|model| (model.weight_bytes, &*model.activation_bytes as &dyn Fn(usize) -> u64)),
            self.memory(),
            self.max_batch_tokens,
        )
    }
}

impl<'a> Device<'a> {
    fn new(device: usize, slot: DeviceSlot, shared: &'a Shared) -> Self {
        let max_batch_tokens = slot.max_batch_tokens.max(1);
        Self {
            name: slot.name,
            calibration: slot.calibration,
            budgets: HashMap::new(),
            trim: slot.trim,
            seat: Seat::new(device, max_batch_tokens),
            residents: Residents {
                models: BTreeMap::new(),
                memory: slot.memory,
                reservations: Arc::clone(shared.reserved(device)),
                fitted_beside: 0,
                max_batch_tokens,
            },
            shared,
        }
    }

    fn run(mut self) {
        loop {
            let step = self.shared.next_step(&mut self.seat, &self.residents);
            self.heed_reservations();
            match step {
                Step::Run(id, batch) => {
                    if self.serve(&id, batch).is_break() {
                        break;
                    }
                }
                Step::Load(id, model) => {
                    if self.load(&id, model).is_break() {
                        break;
                    }
                }
                Step::Drop(id) => self.unload(&id),
                Step::End => break,
            }
        }
    }

    /// Runs a batch, in as many parts as its failures ask for.
    fn serve(&mut self, id: &Arc<str>, batch: Vec<QueuedPass>) -> ControlFlow<()> {
        let Some(resident) = self.residents.models.get_mut(base_id(id)) else {
            tracing::error!(model = &**id, "internal error: a batch came for a model that the device does not hold");
            for pass in batch {
                pass.fail(EngineError::ModelFailed("internal error: the device does not hold it".to_owned()));
            }
            return ControlFlow::Continue(());
        };
        let shared = self.shared;
        let started = Instant::now();
        for pass in &batch {
            pass.begin(started, &shared.metrics);
        }
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            let part = wanted(part, shared);
            if part.is_empty() {
                continue;
            }
            match resident.forward(&part, self.seat.device, shared) {
                Ok(answers) => answer(part, answers, shared),
                Err(Failure::DeviceLost(reason)) => {
                    shared.lose_device(self.seat.device, &reason);
                    return ControlFlow::Break(());
                }
                Err(failure) if part.len() > 1 => {
                    // A smaller part may fit, and another client's sequence may be what fails.
                    if matches!(failure, Failure::OutOfMemory(_)) {
                        resident.record().metrics.halvings.increment(1);
                    }
                    let (first, second) = halve(part, QueuedPass::tokens);
                    parts.extend([second, first]);
                }
                Err(failure) => {
                    for pass in part {
                        pass.fail(EngineError::ModelFailed(failure.reason().to_owned()));
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// The passes that somebody still waits for; the others end here.
fn wanted(part: Vec<QueuedPass>, shared: &Shared) -> Vec<QueuedPass> {
    let now = Instant::now();
    let (wanted, unwanted): (Vec<_>, Vec<_>) = part.into_iter().partition(|pass| pass.is_wanted(now));
    for pass in unwanted {
        pass.discard(now, &shared.metrics);
    }
    wanted
}

/// Hands out answers, and remembers them.
fn answer(part: Vec<QueuedPass>, answers: Vec<Answer>, shared: &Shared) {
    for (pass, answer) in part.into_iter().zip(answers) {
        if let (Some(ids), Answer::Stats(stats)) = (pass.input().sequence(), &answer) {
            shared.cache.insert(pass.cache_key(), ids, stats);
        }
        pass.answer(answer);
    }
    shared.metrics.cache_bytes.set(shared.cache.bytes() as f64);
}
