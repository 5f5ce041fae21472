//! What the handles, the tickets and the device threads all see.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::admission::Gate;
use super::books::{Books, ModelBooks, Seat, Step};
use super::cache::StatsCache;
use super::device::Entry;
use super::meters::Meters;
use super::plan::Plan;
use super::status::{Board, DeviceStatus, Facts};
use super::{
    Class, DeviceSlot, EngineError, EngineSettings, EngineStatus, ModelSlot, ModelStatus, Refusal, UnknownModel,
};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) models: Vec<ModelSlot>,
    /// The devices' names and budgets of memory.
    devices: Vec<(String, u64)>,
    pub(super) gate: Gate,
    pub(super) cache: StatsCache,
    pub(super) board: Board,
    pub(super) meters: Arc<Meters>,
    /// Locked before the board is written, never after.
    books: Mutex<Books>,
    changed: Condvar,
}

impl Shared {
    pub(super) fn new(models: Vec<ModelSlot>, devices: &[DeviceSlot], settings: &EngineSettings) -> Self {
        let meters = Meters::new(&models, devices);
        Self {
            gate: Gate::new(models.len(), settings.max_queue_tokens, devices, meters.queue_tokens.clone()),
            cache: StatsCache::new(settings, meters.disk.clone()),
            board: Board::new(Facts::new(models.iter().map(|model| model.eager), devices.len())),
            meters: Arc::new(meters),
            books: Mutex::new(Books::new(&models, devices.len())),
            changed: Condvar::new(),
            devices: devices.iter().map(|device| (device.name.clone(), device.memory)).collect(),
            models,
        }
    }

    /// The index of a model.
    pub(super) fn find(&self, id: &str) -> Result<usize, UnknownModel> {
        self.models.iter().position(|model| model.id == id).ok_or_else(|| UnknownModel(id.to_owned()))
    }

    /// Looks at the books, or changes in them what no other thread waits for.
    pub(super) fn with_books<R>(&self, with: impl FnOnce(&mut Books) -> R) -> R {
        with(&mut self.lock())
    }

    /// Changes the books, says so on the board, and has the device threads look again.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Books) -> R) -> R {
        let mut books = self.lock();
        let result = change(&mut books);
        self.publish(&mut books);
        self.changed.notify_all();
        result
    }

    /// Queues admitted sequences of one model.
    pub(super) fn push(&self, class: Class, model: usize, entries: Vec<Entry>) {
        self.lock().push(class, model, entries);
        self.changed.notify_all();
    }

    /// Waits until there is something for a device to do.
    pub(super) fn next_step(&self, seat: &mut Seat, budget: impl Fn(usize) -> usize) -> Step {
        let mut books = self.lock();
        loop {
            let now = Instant::now();
            let step = books.step(seat, &budget, now, &self.meters);
            self.publish(&mut books);
            if let Some(step) = step {
                // What one thread takes up may be what another waits to see gone.
                self.changed.notify_all();
                return step;
            }
            books = self.wait(books, None);
        }
    }

    /// Has the device threads finish what is queued, until then at most, and waits for that. What has not started by
    /// then is dropped.
    pub(super) fn finish(&self, until: Option<Instant>) {
        self.change(Books::finish);
        let mut books = self.lock();
        while books.is_busy() {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                books.stop();
                self.publish(&mut books);
                self.changed.notify_all();
            } else {
                books = self.wait(books, left);
            }
        }
    }

    /// Waits until the books may have changed, for so long at most.
    fn wait<'a>(&self, books: MutexGuard<'a, Books>, time: Option<Duration>) -> MutexGuard<'a, Books> {
        match time {
            Some(time) => self.changed.wait_timeout(books, time).unwrap_or_else(PoisonError::into_inner).0,
            None => self.changed.wait(books).unwrap_or_else(PoisonError::into_inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the board up to date with the books, and then tells those who wait.
    fn publish(&self, books: &mut Books) {
        let mut used = vec![0_u64; self.devices.len()];
        for model in &books.models {
            for device in model.resident() {
                let weights = model.source().map_or(0, |source| source.weight_bytes);
                used[device] = used[device].saturating_add(weights);
            }
        }
        self.board.bring_up_to_date(|facts| {
            let mut changed = false;
            for (facts, model) in facts.models.iter_mut().zip(&books.models) {
                changed |= replace(&mut facts.state, model.state());
                changed |= replace(&mut facts.resident, model.resident());
                changed |= replace(&mut facts.loaded_at, model.loaded_at());
            }
            for ((facts, used), gauge) in facts.devices.iter_mut().zip(used).zip(&self.meters.memory_used) {
                if replace(&mut facts.memory_used, used) {
                    gauge.set(used as f64);
                    changed = true;
                }
            }
            changed
        });
        books.models.iter_mut().for_each(ModelBooks::tell);
    }

    /// Declares a device lost, and with it the engine. The first reason stays; the gate closes after it is known, so
    /// that whoever finds the gate closed finds the reason.
    pub(super) fn lose_device(&self, device: usize, reason: &str) {
        tracing::error!(device = self.devices[device].0, reason, "the device is lost");
        self.board.announce(|facts| {
            facts.lost.get_or_insert_with(|| reason.to_owned());
            facts.devices[device].lost.get_or_insert_with(|| reason.to_owned());
            facts.last_error = Some((Instant::now(), reason.to_owned()));
        });
        self.gate.close();
        self.change(Books::stop);
    }

    /// Notes that a device's thread has ended.
    pub(super) fn end_thread(&self, device: usize) {
        self.change(|books| books.end_thread(device));
        self.board.announce(|facts| facts.devices[device].alive = false);
    }

    /// Why an admitted sequence was dropped without an answer, which only happens when the engine ends.
    pub(super) fn why_it_ended(&self) -> EngineError {
        match &self.board.read().lost {
            Some(reason) => EngineError::DeviceLost(reason.clone()),
            None if self.gate.is_closed() => EngineError::ShuttingDown,
            None => EngineError::DeviceLost("the device thread has ended".to_owned()),
        }
    }

    /// Why the gate is closed.
    pub(super) fn why_it_refuses(&self) -> Refusal {
        match &self.board.read().lost {
            Some(reason) => Refusal::DeviceLost(reason.clone()),
            None => Refusal::Draining,
        }
    }

    /// What a model's queue moves at, in tokens per second, as far as that is known: its speed on one device, and, as
    /// seen by one who waits for it, the speeds of all models that stand in its way, by index.
    ///
    /// Only those that can run nowhere else do, and all of the model's devices work on them: so what is estimated from
    /// these is a lower bound of the wait.
    pub(super) fn rates(&self, model: usize, now: Instant) -> (Option<f64>, Vec<Option<f64>>) {
        let facts = self.board.read();
        let places = |index: usize| match &*facts.models[index].resident {
            [] => &self.models[index].devices,
            _ => &facts.models[index].resident,
        };
        let own = places(model);
        let rate = |index: usize| facts.models[index].rate?.at(now);
        let in_the_way = |index: usize| places(index).iter().all(|device| own.contains(device));
        let scaled = |index: usize| Some(rate(index).filter(|_| in_the_way(index))? * own.len() as f64);
        (rate(model), (0..facts.models.len()).map(scaled).collect())
    }

    /// How many devices work on the model's queue, or would.
    pub(super) fn width(&self, model: usize) -> usize {
        match self.board.read().models[model].resident.len() {
            0 => self.models[model].devices.len(),
            width => width,
        }
    }

    /// Counts what the cache did for an admitted request.
    pub(super) fn count_cache(&self, model: usize, plan: &Plan) {
        let meters = &self.meters.models[model];
        meters.cache_hits.increment(plan.cached as u64);
        meters.cache_recalls.increment(plan.recalled as u64);
        let missed = plan.pending.iter().filter(|(_, task)| task.sequence().is_some());
        meters.cache_misses.increment(missed.count() as u64);
    }

    /// The engine at a glance.
    pub(super) fn status(&self) -> EngineStatus {
        let now = Instant::now();
        let facts = self.board.read();
        let models = self.models.iter().zip(&facts.models).map(|(slot, model)| ModelStatus {
            id: slot.id.clone(),
            eager: model.eager,
            state: model.state.clone(),
            resident: model.resident.clone(),
            loaded_at: model.loaded_at,
            last_used: model.last_used,
            tokens_per_second: model.rate.and_then(|rate| rate.at(now)),
        });
        let devices = self.devices.iter().zip(&facts.devices).map(|((name, memory), device)| DeviceStatus {
            name: name.clone(),
            memory_budget: *memory,
            memory_used: device.memory_used,
            alive: device.alive,
            lost: device.lost.clone(),
            busy_since: device.busy_since,
        });
        EngineStatus {
            models: models.collect(),
            devices: devices.collect(),
            interactive_tokens: self.gate.tokens(Class::Interactive),
            batch_tokens: self.gate.tokens(Class::Batch),
            last_ok: facts.last_ok,
            last_error: facts.last_error.clone(),
            busy_since: facts.devices.iter().filter_map(|device| device.busy_since).min(),
            device_alive: facts.alive(),
            device_lost: facts.lost.clone(),
            draining: self.gate.is_closed(),
        }
    }
}

/// Whether the value was another.
fn replace<T: PartialEq>(place: &mut T, value: T) -> bool {
    let changed = *place != value;
    *place = value;
    changed
}
