//! An engine with fake models and a recorder of its own.

use super::script::opener;
pub use super::script::{
    Declared, Latch, Script, eventually, fake_filled, fake_next, fake_stats, latched, lock, missing, slow_to_load,
};
use crate::engine::{
    Answered, Circuit, Class, DeviceSlot, DiskCache, Engine, EngineError, EngineOptions, ModelActivity, Pass,
    PendingRequest, Refusal, Request, Stats,
};
use crate::pool::{LoadError, ModelState, Pool, UnloadError};
use lm::models::masked::{Candidates, Filled, MaskedPosition};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;

pub struct Rig {
    pub engine: Engine,
    registry: Registry,
    /// True if the first model is a masked one.
    masked: bool,
    settings: RigSettings,
    trims: Vec<Arc<AtomicUsize>>,
}

/// The settings of a rig; all its devices have the same threads and budget of tokens.
#[derive(Clone)]
pub struct RigSettings {
    pub threads: usize,
    pub max_batch_tokens: usize,
    pub max_queue_tokens: usize,
    pub cache_bytes: u64,
    pub disk_cache: Option<DiskCache>,
    /// Memory by device.
    pub memory: Vec<u64>,
    /// True if all devices are connections to one server.
    pub one_server: bool,
}

pub fn settings() -> RigSettings {
    RigSettings {
        threads: 1,
        max_batch_tokens: 100,
        max_queue_tokens: 1000,
        cache_bytes: 0,
        disk_cache: None,
        memory: vec![u64::MAX],
        one_server: false,
    }
}

/// One device with `bytes` of memory.
pub fn memory(bytes: u64) -> RigSettings {
    RigSettings { memory: vec![bytes], ..settings() }
}

/// Two devices.
pub fn two_devices() -> RigSettings {
    RigSettings { memory: vec![u64::MAX; 2], ..settings() }
}

impl Rig {
    pub fn new(models: Vec<Declared>, settings: RigSettings) -> Self {
        let registry = Registry::default();
        let trims: Vec<Arc<AtomicUsize>> = settings.memory.iter().map(|_| Arc::default()).collect();
        let one: Arc<Circuit> = Arc::default();
        let server = || if settings.one_server { Arc::clone(&one) } else { Arc::default() };
        let devices = settings.memory.iter().zip(&trims).enumerate().map(|(index, (memory, trims))| {
            let trims = Arc::clone(trims);
            DeviceSlot {
                name: format!("fake:{index}"),
                memory: *memory,
                max_batch_tokens: settings.max_batch_tokens,
                max_streamed_tokens: 8 * settings.max_batch_tokens,
                threads: settings.threads,
                server: server(),
                trim: Box::new(move || {
                    trims.fetch_add(1, Ordering::SeqCst);
                }),
            }
        });
        let scripts: Vec<Script> = models.iter().map(|model| model.script.clone()).collect();
        let pool = Pool::new(settings.memory.len(), None, opener(scripts));
        for Declared { declaration, opened, .. } in &models {
            pool.add(declaration.clone()).unwrap();
            if *opened {
                pool.open_now(&declaration.id);
            }
        }
        let engine_settings = EngineOptions {
            max_queue_tokens: settings.max_queue_tokens,
            cache_bytes: settings.cache_bytes,
            disk_cache: settings.disk_cache.clone(),
        };
        let start = || Engine::start(pool, devices.collect(), engine_settings).expect("threads");
        let engine = metrics::with_local_recorder(&registry, start);
        let masked = models.first().is_some_and(|model| model.script.masked);
        Self { engine, registry, masked, settings, trims }
    }

    /// One eager model.
    pub fn with(script: &Script) -> Self {
        Self::new(vec![script.model(true)], settings())
    }

    /// Returns the number of times that freed pages of the device were given back.
    pub fn trims(&self, device: usize) -> usize {
        self.trims[device].load(Ordering::SeqCst)
    }

    /// Submits a request for which there is room.
    pub fn submit(&self, request: Request) -> PendingRequest {
        self.engine.submit(request).expect("room")
    }

    pub fn refusal(&self, request: Request) -> Refusal {
        self.engine.submit(request).expect_err("a refusal")
    }

    /// Runs a request to its end.
    pub async fn run(&self, request: Request) -> Answered {
        self.submit(request).wait().await.expect("an answer")
    }

    /// Runs a request of these sequences to model `m`, and checks its statistics.
    pub async fn run_checked(&self, request: fn(Vec<Arc<[u32]>>) -> Request, sequences: &[Arc<[u32]>]) -> Answered {
        let answered = self.run(request(sequences.to_vec())).await;
        assert_eq!(stats(&answered), fakes("m", sequences));
        answered
    }

    /// Runs one sequence through a model.
    pub async fn ask(&self, model: &str) -> Result<(), EngineError> {
        self.submit(work(model, Class::Interactive, vec![ids(1, 10)])).wait().await.map(drop)
    }

    /// Feeds an audit of `count` sequences of 100 ids, as there is room.
    pub fn feed(&self, count: u32) -> JoinHandle<Result<PendingRequest, Refusal>> {
        let engine = self.engine.clone();
        let sequences = (1..=count).map(|n| ids(n, 100)).collect();
        tokio::spawn(async move { engine.submit_when_room(audit(sequences)).await })
    }

    pub fn load_behind(&self, model: &'static str) -> JoinHandle<Result<(), LoadError>> {
        let engine = self.engine.clone();
        tokio::spawn(async move { engine.pool().load(model).await })
    }

    pub fn unload_behind(&self, model: &'static str) -> JoinHandle<Result<(), UnloadError>> {
        let engine = self.engine.clone();
        tokio::spawn(async move { engine.pool().unload(model).await })
    }

    pub fn shutdown_behind(&self, grace: Duration) -> JoinHandle<()> {
        let engine = self.engine.clone();
        tokio::task::spawn_blocking(move || engine.shutdown(grace))
    }

    pub fn state(&self, model: usize) -> ModelState {
        self.engine.pool().status()[model].state.clone()
    }

    /// The models' states in one letter each: unloaded, loading, ready, draining, failed.
    pub fn states(&self) -> String {
        let letter = |state: &ModelState| match state {
            ModelState::Closed | ModelState::Opened => 'u',
            ModelState::Fetching | ModelState::Loading => 'l',
            ModelState::Ready => 'r',
            ModelState::Draining => 'd',
            ModelState::Failed(_) => 'f',
        };
        self.engine.pool().status().iter().map(|model| letter(&model.state)).collect()
    }

    /// The devices that hold a model.
    pub fn resident(&self, model: usize) -> Vec<usize> {
        self.engine.pool().status()[model].resident.clone()
    }

    /// Returns the recent activity of a model.
    pub fn activity(&self, model: usize) -> ModelActivity {
        self.engine.status().models[model].clone()
    }

    pub fn memory_used(&self, device: usize) -> u64 {
        let used = self.engine.status().devices[device].memory_used;
        assert_eq!(self.metric(&format!("device_memory_bytes{{device=fake:{device},kind=used}}")), used as f64);
        used
    }

    /// The value of a counter or gauge, `name{key=value,...}` with the prefix of the engine left out.
    pub fn metric(&self, series: &str) -> f64 {
        self.registry.value(&format!("pdr_audit_engine_{series}"))
    }

    /// Nothing is left over: no tokens queued, the gauges at zero, and the windows free (multiples of 100 in every
    /// rig).
    pub async fn assert_idle(&self) {
        eventually(|| {
            let status = self.engine.status();
            status.interactive_tokens + status.batch_tokens == 0 && status.busy_since().is_none()
        })
        .await;
        for class in ["interactive", "batch"] {
            assert_eq!(self.metric(&format!("queue_tokens{{class={class}}}")), 0.0);
        }
        let batch_window = self.settings.max_batch_tokens * 4 * self.settings.memory.len();
        for (class, window) in [(Class::Interactive, self.settings.max_queue_tokens), (Class::Batch, batch_window)] {
            let model = self.activity(0).id;
            let count = window / 100;
            let full = if self.masked {
                self.engine.submit(fill_work(&model, class, blanks(&ids(0, 100), count)))
            } else {
                self.engine.submit(work(&model, class, (0..count).map(|n| ids(n as u32, 100)).collect()))
            };
            drop(full.expect("the whole window is free"));
        }
    }
}

/// A rig of one model whose device stands before the latch with the sequence 1, of 10 ids.
pub async fn held() -> (Script, Arc<Latch>, Rig, PendingRequest) {
    let (script, latch) = latched("m");
    let rig = Rig::with(&script);
    let first = rig.submit(client(vec![ids(1, 10)]));
    latch.reached().await;
    (script, latch, rig, first)
}

/// A sequence of `len` ids whose first is `first`.
pub fn ids(first: u32, len: usize) -> Arc<[u32]> {
    (first..).take(len).collect()
}

pub fn work(model: &str, class: Class, sequences: Vec<Arc<[u32]>>) -> Request {
    request(model, class, sequences.into_iter().map(Pass::score))
}

pub fn fill_work(model: &str, class: Class, blanks: Vec<MaskedPosition>) -> Request {
    request(model, class, blanks.into_iter().map(Pass::fill))
}

pub fn request(model: &str, class: Class, passes: impl Iterator<Item = Arc<Pass>>) -> Request {
    let mut request = Request::new(model, format!("sha256:{model}").into(), class, None);
    passes.for_each(|pass| drop(request.add(pass)));
    request
}

/// Waits for the answers of requests.
pub async fn answered(requests: impl IntoIterator<Item = PendingRequest>) {
    for request in requests {
        request.wait().await.expect("an answer");
    }
}

/// The statistics that a fake model gives of sequences.
pub fn fakes(model: &str, sequences: &[Arc<[u32]>]) -> Vec<Stats> {
    sequences.iter().map(|ids| fake_stats(model, ids)).collect()
}

/// The statistics of the passes of a request.
pub fn stats(answered: &Answered) -> Vec<Stats> {
    answered.passes.iter().map(|pass| pass.stats().expect("an answer").clone()).collect()
}

/// Returns what fills the masked positions of a request.
pub fn filled(answered: &Answered) -> Vec<Filled> {
    answered.passes.iter().map(|pass| pass.filled().expect("an answer").clone()).collect()
}

/// Blanks at the first `count` places of a sequence.
pub fn blanks(ids: &Arc<[u32]>, count: usize) -> Vec<MaskedPosition> {
    let candidates = Arc::new(Candidates { mask: 0, allowed: Arc::new([]), best: 1 });
    let blank = |position| MaskedPosition { ids: Arc::clone(ids), position, candidates: Arc::clone(&candidates) };
    (0..count).map(blank).collect()
}

/// Interactive work for model `m`.
pub fn client(sequences: Vec<Arc<[u32]>>) -> Request {
    work("m", Class::Interactive, sequences)
}

/// Batch work for model `m`.
pub fn audit(sequences: Vec<Arc<[u32]>>) -> Request {
    work("m", Class::Batch, sequences)
}

/// A recorder of metrics that only remembers values: by series, true for a gauge, and its bits.
#[derive(Default)]
struct Registry(Mutex<BTreeMap<String, (bool, Arc<AtomicU64>)>>);

impl Registry {
    /// The value of a counter or gauge, `name{key=value,...}`.
    fn value(&self, series: &str) -> f64 {
        let cells = lock(&self.0);
        let (gauge, cell) = cells.get(series).expect("series");
        let value = cell.load(Ordering::Relaxed);
        if *gauge { f64::from_bits(value) } else { value as f64 }
    }

    fn cell(&self, key: &Key, gauge: bool) -> Arc<AtomicU64> {
        let labels: Vec<_> = key.labels().map(|l| format!("{}={}", l.key(), l.value())).collect();
        let series = format!("{}{{{}}}", key.name(), labels.join(","));
        Arc::clone(&lock(&self.0).entry(series).or_insert((gauge, Arc::default())).1)
    }
}

impl Recorder for Registry {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.cell(key, false))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.cell(key, true))
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
