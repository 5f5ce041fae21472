//! The thread of a device: which step comes next.

use super::resident::ResidentModel;
use crate::engine::DeviceSlot;
use crate::engine::circuit::Circuit;
use crate::engine::error::StartError;
use crate::engine::queued::QueuedPass;
use crate::engine::request::Answer;
use crate::engine::scheduler::{Holdings, Seat, Step};
use crate::engine::shared::Shared;
use crate::pool::{Model, base_id, working_bytes};
use lm::models::Pending;
use lm::panics::panic_message;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

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
    pub(super) slot: DeviceSlot,
    pub(super) seat: Seat,
    pub(super) residents: Residents,
    /// The batch that the device works on while this thread goes on.
    pub(super) in_flight: Option<InFlightBatch>,
    /// Its failures to answer.
    pub(super) circuit: Circuit,
    pub(super) shared: &'a Arc<Shared>,
}

/// A batch, or a part of one, that the device works on.
pub(super) struct InFlightBatch {
    pub(super) model: Arc<str>,
    pub(super) passes: Vec<QueuedPass>,
    pub(super) answers: Pending<Vec<Answer>>,
    /// When the device came to it.
    pub(super) since: Instant,
}

/// The models that the device holds, and the memory they share.
pub(super) struct Residents {
    pub(super) models: BTreeMap<Arc<str>, ResidentModel>,
    /// Maximum number of bytes they may take, including what is reserved.
    pub(super) memory: u64,
    /// Number of those bytes reserved for something else.
    pub(super) reservations: Arc<AtomicU64>,
    /// Number of them when the batches were last fitted.
    pub(super) fitted_beside: u64,
    pub(super) max_batch_tokens: usize,
}

impl Residents {
    pub(super) fn weight_bytes(&self) -> u64 {
        self.models.values().map(|resident| resident.model.weight_bytes).fold(0, u64::saturating_add)
    }

    pub(super) fn memory(&self) -> u64 {
        self.memory.saturating_sub(self.reserved())
    }

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
        self.models.get(base_id(model)).map_or(1, |resident| resident.budget)
    }

    fn has_room_for(&self, model: &Model) -> bool {
        let all = self.models.values().map(|resident| &*resident.model).chain([model]);
        working_bytes(all.map(Model::footprint), self.max_batch_tokens) <= self.memory()
    }
}

impl<'a> Device<'a> {
    fn new(device: usize, slot: DeviceSlot, shared: &'a Arc<Shared>) -> Self {
        let max_batch_tokens = slot.max_batch_tokens.max(1);
        Self {
            seat: Seat::new(device, max_batch_tokens),
            residents: Residents {
                models: BTreeMap::new(),
                memory: slot.memory,
                reservations: Arc::clone(shared.reserved(device)),
                fitted_beside: 0,
                max_batch_tokens,
            },
            in_flight: None,
            circuit: Circuit::default(),
            slot,
            shared,
        }
    }

    fn run(mut self) {
        while self.take_step().is_continue() {}
    }

    /// Does what comes next. Behind a batch that the device still works on, that is a full one; then the former is finished.
    fn take_step(&mut self) -> ControlFlow<()> {
        let step = match self.in_flight.take() {
            None => self.shared.next_step(&mut self.seat, &self.residents),
            Some(batch) if batch.passes.iter().any(QueuedPass::runs_alone) => return self.finish(batch),
            Some(batch) => match self.shared.full_batch(&mut self.seat, &self.residents) {
                Some(step) => {
                    self.in_flight = Some(batch);
                    step
                }
                None => return self.finish(batch),
            },
        };
        self.heed_reservations();
        match step {
            Step::Run(id, batch) => self.serve(&id, batch),
            Step::Load(id, model) => {
                self.load(&id, model);
                ControlFlow::Continue(())
            }
            Step::Drop(id) => {
                self.unload(&id);
                ControlFlow::Continue(())
            }
            Step::Probe => {
                self.probe();
                ControlFlow::Continue(())
            }
            Step::End => ControlFlow::Break(()),
        }
    }
}
