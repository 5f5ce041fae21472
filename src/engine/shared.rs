//! State shared by the handles, the pending requests and the device threads.
//!
//! Locks are taken in this order, and each is held for moments only: the scheduler, the pool's models, the facts.

use super::admission::Gate;
use super::cache::StatsCache;
use super::error::{EngineError, Refusal};
use super::metrics::EngineMetrics;
use super::queued::QueuedPass;
use super::record::{ModelRecord, Records};
use super::request::Class;
use super::scheduler::{Holdings, Scheduler, Seat, Step};
use super::status::{DeviceStatus, EngineStatus, ModelActivity, Unanswered};
use super::{DeviceSlot, EngineOptions};
use crate::pool::{Ended, Lifecycle, Models, Pool, working_bytes};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) pool: Pool,
    pub(super) gate: Gate,
    pub(super) cache: StatsCache,
    pub(super) metrics: Arc<EngineMetrics>,
    records: Records,
    scheduler: Mutex<Scheduler>,
    /// The status as far as the device threads know it.
    facts: Mutex<EngineStatus>,
    /// Bytes of the devices' memory that models may not take.
    reserved: Vec<Arc<AtomicU64>>,
    /// Number of requests admitted.
    requests: AtomicU64,
}

impl Shared {
    pub(super) fn new(pool: Pool, devices: &[DeviceSlot], settings: &EngineOptions) -> Self {
        let metrics = EngineMetrics::new(devices);
        let records = Records::new(devices.iter().map(|device| device.name.clone()).collect());
        for status in pool.status() {
            // Made now, so that every series is there before the first request.
            records.get(&status.declaration.id, &status.declaration.devices);
        }
        let facts = devices.iter().map(|device| DeviceStatus {
            name: device.name.clone(),
            memory_budget: device.memory,
            memory_used: 0,
            alive: true,
            lost: None,
            unavailable: None,
            busy_since: None,
            progressed: None,
        });
        Self {
            pool,
            gate: Gate::new(settings.max_queue_tokens, devices, &metrics.queue_tokens),
            cache: StatsCache::new(settings, metrics.disk.clone()),
            metrics: Arc::new(metrics),
            records,
            scheduler: Mutex::new(Scheduler::new(devices.len())),
            facts: Mutex::new(EngineStatus { devices: facts.collect(), ..EngineStatus::default() }),
            reserved: devices.iter().map(|_| Arc::default()).collect(),
            requests: AtomicU64::new(0),
        }
    }

    pub(super) fn number_request(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed)
    }

    /// Bytes of a device's memory that models may not take.
    pub(super) fn reserved(&self, device: usize) -> &Arc<AtomicU64> {
        &self.reserved[device]
    }

    /// Returns the bytes of the weights on a device, and of a batch of `tokens` tokens of the model that takes most.
    pub(super) fn working_bytes(&self, device: usize, tokens: usize) -> u64 {
        let models = self.pool.lock();
        let resident = models.iter().filter(|(_, model)| model.is_resident(device));
        working_bytes(resident.filter_map(|(_, model)| model.model()).map(|model| model.footprint()), tokens)
    }

    pub(super) fn record(&self, id: &str, devices: &[usize]) -> Arc<ModelRecord> {
        self.records.get(id, devices)
    }

    pub(super) fn record_of(&self, id: &str, model: &Lifecycle) -> Arc<ModelRecord> {
        self.records.get(id, &model.declaration().devices)
    }

    /// Changes the scheduler and the models together, and has all who wait look again.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Scheduler, &mut Models) -> R) -> R {
        let result = change(&mut self.lock(), &mut self.pool.lock());
        self.pool.signal().raise();
        result
    }

    /// Queues admitted passes of one request.
    pub(super) fn push(&self, passes: Vec<QueuedPass>) {
        self.lock().push(passes);
        self.pool.signal().raise();
    }

    /// Puts passes that a device took and did not answer before all others.
    pub(super) fn put_back(&self, model: &Arc<str>, passes: Vec<QueuedPass>) {
        let now = Instant::now();
        let unwanted = self.lock().put_back(model, passes, now);
        for pass in unwanted {
            pass.discard(now, &self.metrics);
        }
        self.pool.signal().raise();
    }

    /// Takes out of the queue what is left there of a request that nobody waits for, so that its room is free at once.
    pub(super) fn cancel(&self, class: Class, model: &str, request: u64) {
        let cancelled = self.lock().cancel(class, model, request);
        let now = Instant::now();
        for pass in cancelled {
            pass.discard(now, &self.metrics);
        }
    }

    pub(super) fn next_step(&self, seat: &mut Seat, holdings: &impl Holdings) -> Step {
        let signal = self.pool.signal();
        loop {
            let version = signal.version();
            let step = self.try_step(seat, holdings);
            if let Some(step) = step {
                // Another thread may wait for what this one takes up to be gone.
                signal.raise();
                return step;
            }
            signal.wait_beyond(version, seat.paused_until);
        }
    }

    /// A full batch for a device that has not yet finished the one before it, where one waits.
    pub(super) fn full_batch(&self, seat: &mut Seat, holdings: &impl Holdings) -> Option<Step> {
        let mut scheduler = self.lock();
        let step = scheduler.full_batch(&self.pool.lock(), seat, holdings, Instant::now());
        if step.is_some() {
            self.pool.signal().raise();
        }
        step
    }

    fn try_step(&self, seat: &mut Seat, holdings: &impl Holdings) -> Option<Step> {
        let mut scheduler = self.lock();
        let mut models = self.pool.lock();
        let step = scheduler.step(&mut models, seat, holdings, Instant::now());
        let drained = models.drained();
        for id in &drained {
            // Counted first: who hears of it finds it counted.
            if let Some(record) = self.records.find(id) {
                record.metrics.unloads.increment(1);
            }
        }
        models.finish_drains();
        self.records.retain(models.len(), |id| models.get(id).is_some());
        if !drained.is_empty() {
            self.gate.retain(|id| models.get(id).is_some());
            self.pool.signal().raise();
        }
        step
    }

    /// Tells the device threads to finish the queue, and waits for them until the moment given. What has not started by then
    /// is dropped.
    pub(super) fn finish(&self, until: Option<Instant>) {
        self.finish_behind();
        let signal = self.pool.signal();
        loop {
            let version = signal.version();
            if !self.lock().is_busy() {
                return;
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                self.change(Scheduler::stop);
            } else {
                signal.wait_beyond(version, until);
            }
        }
    }

    /// Tells the device threads to finish the queue and end.
    pub(super) fn finish_behind(&self) {
        self.pool.end(Ended::ShuttingDown);
        self.change(|scheduler, _| scheduler.finish());
    }

    /// Returns true if the engine drops what runs.
    pub(super) fn is_stopped(&self) -> bool {
        self.lock().is_stopped()
    }

    fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The facts. Hold the result briefly.
    pub(super) fn facts(&self) -> MutexGuard<'_, EngineStatus> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes why a device does not answer, or that it does.
    pub(super) fn set_unavailable(&self, device: usize, reason: Option<&str>) {
        self.metrics.unavailable[device].set(if reason.is_some() { 1.0 } else { 0.0 });
        let now = Instant::now();
        self.lock().set_paused(device, reason.is_some(), now);
        let mut facts = self.facts();
        let since = facts.devices[device].unavailable.take().map_or(now, |known| known.since);
        facts.devices[device].unavailable = reason.map(|reason| Unanswered { since, reason: reason.to_owned() });
        if let Some(reason) = reason {
            facts.last_error = Some((Instant::now(), reason.to_owned()));
        }
        drop(facts);
        self.pool.signal().raise();
    }

    /// Returns why none of these devices has answered for longer than a request should wait; `None` if one has, or may soon.
    pub(super) fn why_unanswered(&self, devices: &[usize]) -> Option<String> {
        let facts = self.facts();
        let reason = |device: &usize| facts.silence(*device).map(|silence| silence.reason.clone());
        let reasons: Vec<String> = devices.iter().map(reason).collect::<Option<_>>()?;
        reasons.into_iter().next()
    }

    /// Declares a device lost, and with it the engine. The first reason stays; the gate closes after it is known, so
    /// that whoever finds the gate closed finds the reason.
    pub(super) fn lose_device(&self, device: usize, reason: &str) {
        {
            let mut facts = self.facts();
            tracing::error!(device = facts.devices[device].name, reason, "the device is lost");
            facts.device_lost.get_or_insert_with(|| reason.to_owned());
            facts.devices[device].lost.get_or_insert_with(|| reason.to_owned());
            facts.last_error = Some((Instant::now(), reason.to_owned()));
        }
        self.pool.end(Ended::DeviceLost(reason.to_owned()));
        self.gate.close();
        self.change(Scheduler::stop);
    }

    pub(super) fn end_thread(&self, device: usize) {
        self.facts().devices[device].alive = false;
        self.change(|scheduler, models| scheduler.end_thread(models, device));
    }

    /// Why an admitted pass was dropped without an answer, which only happens when the engine ends.
    pub(super) fn why_it_ended(&self) -> EngineError {
        match &self.facts().device_lost {
            Some(reason) => EngineError::DeviceLost(reason.clone()),
            None if self.gate.is_closed() => EngineError::ShuttingDown,
            None => EngineError::DeviceLost("the device thread has ended".to_owned()),
        }
    }

    pub(super) fn why_it_refuses(&self) -> Refusal {
        match &self.facts().device_lost {
            Some(reason) => Refusal::DeviceLost(reason.clone()),
            None => Refusal::Draining,
        }
    }

    /// Returns the speed at which requests for a model are served, as far as it is known; `None` if there is no such model.
    pub(super) fn speed_for(&self, id: &str, now: Instant) -> Option<QueueSpeed> {
        let models = self.pool.lock();
        let target = models.get(id)?;
        let places = places(target);
        let queues = models.iter().map(|(id, model)| {
            let record = self.record_of(id, model);
            let in_the_way = self::places(model).iter().all(|device| places.contains(device));
            let rate = record.tokens_per_second(now).filter(|_| in_the_way);
            let rate = rate.map(|rate| rate * places.len() as f64);
            (record, rate)
        });
        let queues = queues.collect();
        let record = self.record_of(&target.declaration().id, target);
        let (rate, pass) = (record.tokens_per_second(now), record.shortest_pass(now));
        Some(QueueSpeed { rate, pass, width: places.len(), queues })
    }

    pub(super) fn is_ready(&self) -> bool {
        let models = self.pool.lock();
        let facts = self.facts();
        let is_unavailable = |model: &Lifecycle| {
            let resident = model.resident();
            let answers = |device: &usize| facts.silence(*device).is_none();
            model.declaration().eager && !resident.is_empty() && !resident.iter().any(answers)
        };
        let is_missing = models.iter().any(|(_, model)| model.is_missing() || is_unavailable(model));
        !self.gate.is_closed() && facts.device_alive() && facts.device_lost.is_none() && !is_missing
    }

    pub(super) fn status(&self) -> EngineStatus {
        let now = Instant::now();
        let mut used: Vec<u64> = self.reserved.iter().map(|bytes| bytes.load(Ordering::Acquire)).collect();
        let activity = |(id, model): (&Arc<str>, &Lifecycle)| {
            for device in model.resident() {
                let weights = model.model().map_or(0, |model| model.weight_bytes);
                used[device] = used[device].saturating_add(weights);
            }
            let record = self.record_of(id, model);
            let (last_used, tokens_per_second) = (record.last_used(), record.tokens_per_second(now));
            ModelActivity { id: id.to_string(), last_used, tokens_per_second }
        };
        let models = self.pool.lock().iter().map(activity).collect();
        let mut status = EngineStatus {
            models,
            interactive_tokens: self.gate.tokens(Class::Interactive),
            batch_tokens: self.gate.tokens(Class::Batch),
            draining: self.gate.is_closed(),
            ..self.facts().clone()
        };
        status.devices.iter_mut().zip(used).for_each(|(device, used)| device.memory_used = used);
        status
    }
}

pub(super) struct QueueSpeed {
    /// The model's own speed on one device, in tokens per second.
    pub(super) rate: Option<f64>,
    /// Minimum time of a pass, if the layers of the model are streamed and it is known.
    pub(super) pass: Option<Duration>,
    /// Number of devices that work on the model's queue, or would.
    pub(super) width: usize,
    /// All models' records, with the speed at which each queue moves as seen by one who waits for this model; `None` if it is
    /// unknown, or does not stand in the way: only what can run nowhere else does, and all of the model's devices work on it. So
    /// an estimate from these is a lower bound of the wait.
    pub(super) queues: Vec<(Arc<ModelRecord>, Option<f64>)>,
}

/// The devices that hold a model; those that may, where none does.
fn places(model: &Lifecycle) -> Vec<usize> {
    let resident = model.resident();
    if resident.is_empty() { model.devices().collect() } else { resident }
}
