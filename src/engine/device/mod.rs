//! A device thread: it alone loads, runs and drops the models of its device, one batch at a time, and writes the facts
//! of [`Board`].
//!
//! Invariants:
//!
//! - what fails fails narrowly: a panic or an error of a model costs the sequences of that forward pass, a load
//!   that fails those that wait for it, a sequence that does not fit in memory itself. Only a lost device ends the
//!   threads, and then all of them;
//! - an entry that nobody waits for any more never runs;
//! - an entry that leaves without an answer has first had the reason written on the board.
//!
//! The thread's work runs inside a thread pool of its own, so that the models' parallel loops neither wait for nor
//! slow down others that use rayon.
//!
//! [`Board`]: super::status::Board

mod calibrate;
mod entry;
mod forward;
mod load;
mod loaded;

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

pub(super) use entry::Entry;
pub(super) use forward::Failure;
use forward::panic_message;
use loaded::Loaded;

use super::batch::{Turn, halve};
use super::books::{Seat, Step};
use super::calibration::Choice;
use super::shared::Shared;
use super::task::{Answer, Task};
use super::{Calibration, DeviceSlot, EngineError, StartError};

/// Starts the thread of the device at `index`.
pub(super) fn spawn(index: usize, slot: DeviceSlot, shared: Arc<Shared>) -> Result<JoinHandle<()>, StartError> {
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

struct Device<'a> {
    name: String,
    memory: u64,
    max_batch_tokens: usize,
    calibration: Option<Calibration>,
    /// The budgets of models that were here, by identity.
    budgets: HashMap<Arc<str>, Choice>,
    trim: Box<dyn Fn() + Send>,
    seat: Seat,
    /// By index of the model.
    loaded: Vec<Option<Loaded>>,
    shared: &'a Shared,
}

impl<'a> Device<'a> {
    fn new(device: usize, slot: DeviceSlot, shared: &'a Shared) -> Self {
        let max_batch_tokens = slot.max_batch_tokens.max(1);
        Self {
            name: slot.name,
            memory: slot.memory,
            max_batch_tokens,
            calibration: slot.calibration,
            budgets: HashMap::new(),
            trim: slot.trim,
            seat: Seat { device, turn: Turn::new(max_batch_tokens) },
            loaded: shared.models.iter().map(|_| None).collect(),
            shared,
        }
    }

    fn run(mut self) {
        loop {
            let loaded = &self.loaded;
            let budget = |model: usize| loaded[model].as_ref().map_or(1, Loaded::budget);
            match self.shared.next_step(&mut self.seat, budget) {
                Step::Run(model, batch) => {
                    if self.serve(model, batch).is_break() {
                        break;
                    }
                }
                Step::Load(model, source) => {
                    if self.load(model, source).is_break() {
                        break;
                    }
                }
                Step::Drop(model) => self.unload(model),
                Step::End => break,
            }
        }
    }

    /// Runs a batch, in as many parts as memory asks for.
    fn serve(&mut self, model: usize, batch: Vec<Entry>) -> ControlFlow<()> {
        let Some(loaded) = &mut self.loaded[model] else {
            return ControlFlow::Continue(());
        };
        let shared = self.shared;
        let started = Instant::now();
        for entry in &batch {
            entry.note_wait(started, &shared.meters);
        }
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            let now = Instant::now();
            let (part, unwanted): (Vec<_>, Vec<_>) = part.into_iter().partition(|entry| entry.is_wanted(now));
            for entry in unwanted {
                entry.discard(now, &shared.meters);
            }
            if part.is_empty() {
                continue;
            }
            match loaded.forward(&part, model, self.seat.device, shared) {
                Ok(answers) => {
                    for (entry, answer) in part.into_iter().zip(answers) {
                        if let (Task::Score(ids), Answer::Stats(stats)) = (entry.task(), &answer) {
                            shared.cache.insert(&loaded.source().identity, ids, stats);
                        }
                        entry.answer(Ok(answer));
                    }
                    shared.meters.cache_bytes.set(shared.cache.bytes() as f64);
                }
                Err(Failure::OutOfMemory(_)) if part.len() > 1 => {
                    shared.meters.models[model].halvings.increment(1);
                    let (first, second) = halve(part, Entry::tokens);
                    parts.extend([second, first]);
                }
                Err(Failure::DeviceLost(reason)) => {
                    shared.lose_device(self.seat.device, &reason);
                    return ControlFlow::Break(());
                }
                Err(failure) => {
                    let reason = failure.reason();
                    for entry in part {
                        entry.answer(Err(EngineError::ModelFailed(reason.to_owned())));
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}
