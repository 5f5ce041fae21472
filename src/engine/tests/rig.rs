//! A fake model whose every forward pass is recorded and scripted, and an engine with a recorder of its own.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

use crate::engine::{Class, Engine, EngineSettings, ModelSource, Stats, Work};
use crate::models::{CausalLm, ModelError};
use crate::token_stats::TokenStats;

/// What happens before a forward pass or a load: it may wait, fail or panic.
type Hook = Arc<dyn Fn(&[&[u32]]) -> Result<(), ModelError> + Send + Sync>;

/// A model in the rig's hands. Clones are the same one.
#[derive(Clone)]
pub struct Script {
    id: &'static str,
    on_forward: Hook,
    on_load: Hook,
    forwards: Arc<Mutex<Vec<Vec<Vec<u32>>>>>,
}

impl Script {
    pub fn new(id: &'static str) -> Self {
        Self { id, on_forward: Arc::new(|_| Ok(())), on_load: Arc::new(|_| Ok(())), forwards: Arc::default() }
    }

    pub fn on_forward(mut self, hook: impl Fn(&[&[u32]]) -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_forward = Arc::new(hook);
        self
    }

    pub fn on_load(mut self, hook: impl Fn() -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_load = Arc::new(move |_| hook());
        self
    }

    pub fn source(&self, eager: bool) -> ModelSource {
        let script = self.clone();
        ModelSource {
            id: self.id.to_owned(),
            eager,
            context: Some(5000),
            load: Box::new(move || {
                (script.on_load)(&[])?;
                Ok(Box::new(script.clone()))
            }),
            identity: format!("sha256:{}", self.id),
        }
    }

    /// The forward passes so far, each with its sequences.
    pub fn forwards(&self) -> Vec<Vec<Vec<u32>>> {
        lock(&self.forwards).clone()
    }

    /// The first id of every sequence, per forward pass.
    pub fn firsts(&self) -> Vec<Vec<u32>> {
        let first = |batch: &Vec<Vec<u32>>| batch.iter().map(|ids| ids[0]).collect();
        lock(&self.forwards).iter().map(first).collect()
    }
}

impl CausalLm for Script {
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError> {
        let batch = sequences.iter().map(|ids| ids.to_vec()).collect();
        lock(&self.forwards).push(batch);
        (self.on_forward)(sequences)?;
        Ok(sequences.iter().map(|ids| fake_stats(self.id, ids).to_vec()).collect())
    }
}

/// What the fake model says of a sequence: every entry depends on the model and on all ids up to it.
pub fn fake_stats(model: &str, ids: &[u32]) -> Stats {
    let salt = model.bytes().map(f64::from).sum::<f64>();
    let mut seen = salt;
    let stats = ids.iter().map(|id| {
        seen = seen * 0.5 + f64::from(*id);
        TokenStats { lp: -seen, mu: -seen - 1.0, var: 0.25, max_lp: -0.5 }
    });
    let stats: Vec<_> = stats.collect();
    stats.into_iter().skip(1).collect()
}

/// Holds the device thread until it is opened.
#[derive(Default)]
pub struct Latch {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

impl Latch {
    pub fn pass(&self) {
        let mut state = lock(&self.state);
        state.0 += 1;
        while !state.1 {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub fn open(&self) {
        lock(&self.state).1 = true;
        self.changed.notify_all();
    }

    /// Waits until the device thread stands before the latch.
    pub async fn reached(&self) {
        eventually(|| lock(&self.state).0 > 0).await;
    }
}

/// A model that stands before the latch in every forward pass until it is opened.
pub fn latched(id: &'static str) -> (Script, Arc<Latch>) {
    let latch = Arc::new(Latch::default());
    let inner = Arc::clone(&latch);
    let script = Script::new(id).on_forward(move |_| {
        inner.pass();
        Ok(())
    });
    (script, latch)
}

pub struct Rig {
    pub engine: Engine,
    registry: Registry,
    settings: EngineSettings,
}

pub fn settings() -> EngineSettings {
    EngineSettings { threads: 1, max_batch_tokens: 100, max_queue_tokens: 1000, cache_bytes: 0 }
}

impl Rig {
    pub fn new(sources: Vec<ModelSource>, settings: EngineSettings) -> Self {
        let registry = Registry::default();
        let start = || Engine::start(sources, settings.clone()).expect("threads");
        let engine = metrics::with_local_recorder(&registry, start);
        Self { engine, registry, settings }
    }

    /// One eager model.
    pub fn of(script: &Script) -> Self {
        Self::new(vec![script.source(true)], settings())
    }

    /// The value of a counter or gauge, `name{key=value,...}` with the prefix of the engine left out.
    pub fn metric(&self, series: &str) -> f64 {
        let cells = lock(&self.registry.0);
        let (gauge, cell) = cells.get(&format!("pdr_audit_engine_{series}")).expect("series");
        let value = cell.load(Ordering::Relaxed);
        if *gauge { f64::from_bits(value) } else { value as f64 }
    }

    /// Nothing is left over: no tokens queued, the gauges at zero, and the windows free (multiples of 100 in every
    /// rig).
    pub async fn assert_idle(&self) {
        eventually(|| {
            let status = self.engine.status();
            status.interactive_tokens + status.batch_tokens == 0 && status.busy_since.is_none()
        })
        .await;
        for class in ["interactive", "batch"] {
            assert_eq!(self.metric(&format!("queue_tokens{{class={class}}}")), 0.0);
        }
        for (class, window) in
            [(Class::Interactive, self.settings.max_queue_tokens), (Class::Batch, self.settings.max_batch_tokens * 4)]
        {
            let model = self.engine.status().models[0].id.clone();
            let sequences = (0..window / 100).map(|n| ids(n as u32, 100)).collect();
            let full = work(&model, class, sequences);
            drop(self.engine.submit(full).expect("the whole window is free"));
        }
    }
}

/// A sequence of `len` ids whose first is `first`.
pub fn ids(first: u32, len: usize) -> Arc<[u32]> {
    (first..).take(len).collect()
}

pub fn work(model: &str, class: Class, sequences: Vec<Arc<[u32]>>) -> Work {
    Work { model: model.to_owned(), sequences, class, deadline: None }
}

/// Interactive work for model `m`.
pub fn client(sequences: Vec<Arc<[u32]>>) -> Work {
    work("m", Class::Interactive, sequences)
}

/// Batch work for model `m`.
pub fn audit(sequences: Vec<Arc<[u32]>>) -> Work {
    work("m", Class::Batch, sequences)
}

/// Waits for something that must come; the bound is only there so that a failing test ends.
pub async fn eventually(mut happened: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !happened() {
        assert!(Instant::now() < end, "what was waited for did not come");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A metrics recorder that only remembers values; whether a cell is a gauge, and its bits.
#[derive(Default)]
struct Registry(Mutex<BTreeMap<String, (bool, Arc<AtomicU64>)>>);

impl Registry {
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
