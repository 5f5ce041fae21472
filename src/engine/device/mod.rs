//! The device thread: it alone loads, runs and drops models, one batch at a time, and writes the facts of [`Board`].
//!
//! Invariants:
//!
//! - what fails fails narrowly: a panic or an error of a model costs the sequences of that forward pass, a load
//!   that fails those that wait for it, a sequence that does not fit in memory itself. Only a lost device ends the
//!   thread;
//! - an entry that nobody waits for any more never runs;
//! - an entry that leaves without an answer has first had the reason written on the board.
//!
//! The thread's work runs inside a thread pool of its own, so that the models' parallel loops neither wait for nor
//! slow down others that use rayon.
//!
//! [`Board`]: super::status::Board

mod entry;
mod forward;
mod slot;

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::{Builder, JoinHandle};
use std::time::Instant;

pub(super) use entry::Entry;
pub(super) use forward::Failure;
use forward::panic_message;
use slot::Slot;

use super::batch::{Queue, halve};
use super::shared::Shared;
use super::{EngineError, EngineSettings, ModelSource, StartError};

/// What the handles send to the device thread.
#[derive(Debug)]
pub(super) enum Message {
    /// Admitted sequences.
    Work(Vec<Entry>),
    /// Finish what is queued, until then at most, and end.
    Finish { until: Option<Instant> },
}

/// Starts the device thread.
pub(super) fn spawn(
    sources: Vec<ModelSource>,
    settings: &EngineSettings,
    inbox: Receiver<Message>,
    shared: Arc<Shared>,
) -> Result<JoinHandle<()>, StartError> {
    let threads = match settings.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|index| format!("device-{index}"))
        .build()
        .map_err(|error| StartError(error.to_string()))?;
    let max_batch_tokens = settings.max_batch_tokens.max(1);
    let work = move || {
        // The models are made, used and dropped on the pool's one thread that runs this closure.
        let run = || Device::new(sources, max_batch_tokens, inbox, &shared).run();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| pool.install(run))) {
            let reason = format!("the device thread panicked: {}", panic_message(&*panic));
            shared.lose_device(&reason);
        }
        shared.board.announce(|facts| facts.alive = false);
    };
    let thread = Builder::new().name("device".to_owned()).spawn(work);
    thread.map_err(|error| StartError(error.to_string()))
}

/// When the thread ends after it was told to.
#[derive(Clone, Copy)]
enum Finish {
    WhenEmpty,
    At(Instant),
}

struct Device<'a> {
    slots: Vec<Slot>,
    queue: Queue<Entry>,
    inbox: Receiver<Message>,
    finish: Option<Finish>,
    shared: &'a Shared,
}

impl<'a> Device<'a> {
    fn new(sources: Vec<ModelSource>, max_batch_tokens: usize, inbox: Receiver<Message>, shared: &'a Shared) -> Self {
        let slots = sources.into_iter().enumerate();
        let slots = slots.map(|(index, source)| Slot::new(index, source, max_batch_tokens));
        Self { slots: slots.collect(), queue: Queue::new(max_batch_tokens, Entry::head), inbox, finish: None, shared }
    }

    fn run(mut self) {
        for slot in &mut self.slots {
            if slot.is_eager() && !self.shared.gate.is_closed() {
                // A failure is on the board; the other models serve all the same.
                let _ = slot.load(self.shared);
            }
        }
        while self.receive() {
            self.sweep();
            let slots = &self.slots;
            let batch = self.queue.next_batch(|model| slots[model].budget());
            if self.serve(batch).is_break() {
                break;
            }
        }
    }

    /// Takes in what has arrived, and waits for it where there is nothing to do; false when it is time to end.
    fn receive(&mut self) -> bool {
        if self.queue.is_empty() && self.finish.is_none() {
            match self.inbox.recv() {
                Ok(message) => self.accept(message),
                // All handles are gone.
                Err(_) => return false,
            }
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.accept(message);
        }
        match self.finish {
            None => true,
            Some(Finish::WhenEmpty) => !self.queue.is_empty(),
            Some(Finish::At(until)) => !self.queue.is_empty() && Instant::now() < until,
        }
    }

    fn accept(&mut self, message: Message) {
        match message {
            Message::Work(entries) => {
                for entry in entries {
                    self.queue.push(entry.class(), entry);
                }
            }
            Message::Finish { until } => {
                self.finish = Some(until.map_or(Finish::WhenEmpty, Finish::At));
            }
        }
    }

    /// Drops what nobody waits for, wherever it stands in the queue, so that its room is free again. One pass over
    /// the queue a batch: a few nanoseconds an entry, against a forward pass.
    fn sweep(&mut self) {
        let now = Instant::now();
        for entry in self.queue.extract(|entry| !entry.is_wanted(now)) {
            entry.discard(now, &self.shared.meters);
        }
    }

    /// Runs a batch, in as many parts as memory asks for.
    fn serve(&mut self, batch: Vec<Entry>) -> ControlFlow<()> {
        let Some(model) = batch.first().map(|entry| entry.head().model) else {
            return ControlFlow::Continue(());
        };
        if let Err(reason) = self.slots[model].load(self.shared) {
            // All that wait for the model share its fate; each would only try in vain again.
            let waiting = self.queue.extract(|entry| entry.head().model == model);
            for entry in batch.into_iter().chain(waiting) {
                entry.answer(Err(EngineError::ModelFailed(reason.clone())));
            }
            return ControlFlow::Continue(());
        }
        let started = Instant::now();
        for entry in &batch {
            entry.note_wait(started, &self.shared.meters);
        }
        let mut parts = vec![batch];
        while let Some(part) = parts.pop() {
            let now = Instant::now();
            let (part, unwanted): (Vec<_>, Vec<_>) = part.into_iter().partition(|entry| entry.is_wanted(now));
            for entry in unwanted {
                entry.discard(now, &self.shared.meters);
            }
            if part.is_empty() {
                continue;
            }
            match self.slots[model].forward(&part, self.shared) {
                Ok(answers) => {
                    for (entry, stats) in part.into_iter().zip(answers) {
                        self.shared.cache.insert(model, entry.ids(), &stats);
                        entry.answer(Ok(stats));
                    }
                    self.shared.meters.cache_bytes.set(self.shared.cache.bytes() as f64);
                }
                Err(Failure::OutOfMemory(_)) if part.len() > 1 => {
                    self.shared.meters.models[model].halvings.increment(1);
                    let (first, second) = halve(part, |entry| entry.head().tokens);
                    parts.extend([second, first]);
                }
                Err(Failure::DeviceLost(reason)) => {
                    self.shared.lose_device(&reason);
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
