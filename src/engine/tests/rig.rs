//! Fake models whose every forward pass is recorded and scripted, and an engine with a recorder of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::recorder::Registry;
use crate::config::Dtype;
use crate::engine::{
    Answered, Calibration, Class, DeviceSlot, DiskCache, Engine, EngineSettings, KnownBudgets, ModelActivity, Request,
    Stats,
};
use crate::models::demo::DEMO;
use crate::models::masked::{Candidates, Filled, MaskedPosition};
use crate::models::{CausalLm, LoadedModel, MaskedLm, ModelError};
use crate::pool::{Declaration, Loader, Model, ModelInfo, ModelState, Opener, Origin, Pool};
use crate::token_stats::TokenStats;
use crate::tokenizer::Tokenizer;

/// What happens before a forward pass on a device: it may wait, fail or panic.
type Hook = Arc<dyn Fn(usize, &[&[u32]]) -> Result<(), ModelError> + Send + Sync>;

/// What happens before a load to a device.
type LoadHook = Arc<dyn Fn(usize) -> Result<(), ModelError> + Send + Sync>;

/// What happens before the files are opened.
type OpenHook = Arc<dyn Fn() -> Result<(), ModelError> + Send + Sync>;

/// A forward pass: on which device, with which sequences.
type Forward = (usize, Vec<Vec<u32>>);

/// A model in the rig's hands. Clones are the same one.
#[derive(Clone)]
pub struct Script {
    id: &'static str,
    masked: bool,
    weight_bytes: u64,
    bytes_per_token: u64,
    on_forward: Hook,
    on_load: LoadHook,
    on_open: OpenHook,
    /// What is loaded in its place.
    loader: Option<Loader>,
    forwards: Arc<Mutex<Vec<Forward>>>,
    copies: Arc<AtomicUsize>,
}

/// A model as it is declared, and what its files are; none where they cannot be opened.
pub struct Declared {
    pub declaration: Declaration,
    pub script: Script,
    /// Whether its files are open before the engine starts.
    pub opened: bool,
}

impl Declared {
    pub fn pinned(mut self) -> Self {
        self.declaration.pinned = true;
        self
    }

    pub fn on(mut self, devices: &[usize]) -> Self {
        self.declaration.devices = devices.to_vec();
        self
    }

    pub fn unopened(mut self) -> Self {
        self.opened = false;
        self
    }
}

impl Script {
    pub fn new(id: &'static str) -> Self {
        Self {
            id,
            masked: false,
            weight_bytes: 0,
            bytes_per_token: 0,
            on_forward: Arc::new(|_, _| Ok(())),
            on_load: Arc::new(|_| Ok(())),
            on_open: Arc::new(|| Ok(())),
            loader: None,
            forwards: Arc::default(),
            copies: Arc::default(),
        }
    }

    /// A masked model instead of a causal one.
    pub fn masked(mut self) -> Self {
        self.masked = true;
        self
    }

    /// What it takes of a device: weights, and activations per token.
    pub fn takes(mut self, weight_bytes: u64, bytes_per_token: u64) -> Self {
        (self.weight_bytes, self.bytes_per_token) = (weight_bytes, bytes_per_token);
        self
    }

    pub fn on_forward(self, hook: impl Fn(&[&[u32]]) -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_forward_of(move |_, sequences| hook(sequences))
    }

    pub fn on_forward_of(
        mut self,
        hook: impl Fn(usize, &[&[u32]]) -> Result<(), ModelError> + Send + Sync + 'static,
    ) -> Self {
        self.on_forward = Arc::new(hook);
        self
    }

    pub fn on_open(mut self, hook: impl Fn() -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_open = Arc::new(hook);
        self
    }

    pub fn on_load(self, hook: impl Fn() -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_load_of(move |_| hook())
    }

    pub fn on_load_of(mut self, hook: impl Fn(usize) -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_load = Arc::new(hook);
        self
    }

    /// Declared for the first device, and opened.
    pub fn model(&self, eager: bool) -> Declared {
        let declaration = Declaration {
            id: self.id.to_owned(),
            origin: Origin::Files(DEMO),
            dtype: Dtype::Auto,
            reference: None,
            eager,
            pinned: false,
            devices: vec![0],
        };
        Declared { declaration, script: self.clone(), opened: true }
    }

    /// The same, but this is loaded.
    pub fn loading(&self, loader: Loader) -> Self {
        Self { loader: Some(loader), ..self.clone() }
    }

    /// What its files say.
    pub fn opened(&self, devices: &[usize]) -> Arc<Model> {
        let (script, per_token) = (self.clone(), self.bytes_per_token);
        let info = ModelInfo {
            id: self.id.to_owned(),
            digest: format!("sha256:{}", self.id),
            tokenizer_digest: "sha256:demo".to_owned(),
            dtype: "f32".to_owned(),
            rounding: None,
            device: "fake".to_owned(),
            commit: None,
        };
        Arc::new(Model {
            identity: format!("sha256:{}", self.id).into(),
            tokenizer: demo_tokenizer(),
            tokenizer_digest: info.tokenizer_digest.as_str().into(),
            info,
            context: Some(5000),
            longest: 5000,
            vocab_size: 100_000,
            masked: self.masked,
            words: None,
            architecture: "script",
            weight_bytes: self.weight_bytes,
            activation_bytes: Arc::new(move |tokens| per_token * tokens as u64),
            load: Arc::new(move |device| {
                if let Some(loader) = &script.loader {
                    return loader(device);
                }
                (script.on_load)(device)?;
                let running = Running::new(script.clone(), device);
                Ok(if script.masked {
                    LoadedModel::Masked(Box::new(running))
                } else {
                    LoadedModel::Causal(Box::new(running))
                })
            }),
            devices: devices.to_vec(),
            stamp: DEMO.stamp().unwrap(),
        })
    }

    /// How many copies of it are in memory.
    pub fn copies(&self) -> usize {
        self.copies.load(Ordering::SeqCst)
    }

    /// The forward passes so far, each with its sequences.
    pub fn forwards(&self) -> Vec<Vec<Vec<u32>>> {
        lock(&self.forwards).iter().map(|(_, batch)| batch.clone()).collect()
    }

    /// The first id of every sequence, per forward pass.
    pub fn firsts(&self) -> Vec<Vec<u32>> {
        let first = |(_, batch): &Forward| batch.iter().map(|ids| ids[0]).collect();
        lock(&self.forwards).iter().map(first).collect()
    }

    /// How many forward passes ran on the device.
    pub fn forwards_on(&self, device: usize) -> usize {
        lock(&self.forwards).iter().filter(|(on, _)| *on == device).count()
    }

    pub fn run(&self, device: usize, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError> {
        let batch = sequences.iter().map(|ids| ids.to_vec()).collect();
        lock(&self.forwards).push((device, batch));
        (self.on_forward)(device, sequences)?;
        Ok(sequences.iter().map(|ids| fake_stats(self.id, ids).to_vec()).collect())
    }
}

fn demo_tokenizer() -> Tokenizer {
    static TOKENIZER: OnceLock<Tokenizer> = OnceLock::new();
    let open = || Origin::Files(DEMO).tokenizer(Err(&crate::hub::HubError::Cancelled)).unwrap();
    TOKENIZER.get_or_init(open).clone()
}

/// A loaded copy.
struct Running {
    script: Script,
    device: usize,
}

impl Running {
    fn new(script: Script, device: usize) -> Self {
        script.copies.fetch_add(1, Ordering::SeqCst);
        Self { script, device }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.script.copies.fetch_sub(1, Ordering::SeqCst);
    }
}

impl CausalLm for Running {
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError> {
        self.script.run(self.device, sequences)
    }
}

impl MaskedLm for Running {
    fn fill(&self, blanks: &[&MaskedPosition]) -> Result<Vec<Filled>, ModelError> {
        let sequences: Vec<&[u32]> = blanks.iter().map(|blank| &*blank.ids).collect();
        self.script.run(self.device, &sequences)?;
        Ok(blanks.iter().map(|blank| fake_filled(self.script.id, blank)).collect())
    }
}

/// What the fake model puts into a blank: it depends on the model, on all ids and on the place.
pub fn fake_filled(model: &str, blank: &MaskedPosition) -> Filled {
    let stats = fake_stats(model, &blank.ids);
    let p_original = stats.last().map_or(0.0, |stats| stats.lp) + blank.position as f64;
    Filled { p_original, best: vec![(blank.position as u32, p_original)] }
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
    /// Whether the first model is a masked one.
    masked: bool,
    settings: Settings,
    trims: Vec<Arc<AtomicUsize>>,
}

/// How all devices of a rig measure budgets.
#[derive(Clone)]
pub struct Calibrated {
    pub ladder: &'static [usize],
    pub time: Duration,
    pub known: Known,
}

/// Budgets in memory, with every call of [`KnownBudgets::keep`]. Clones are the same.
#[derive(Clone, Default)]
pub struct Known(Arc<Mutex<Vec<(String, usize)>>>);

impl Known {
    pub fn kept(&self) -> Vec<(String, usize)> {
        lock(&self.0).clone()
    }
}

impl KnownBudgets for Known {
    fn find(&self, identity: &str) -> Option<usize> {
        self.kept().iter().rfind(|(of, _)| of == identity).map(|(_, tokens)| *tokens)
    }

    fn keep(&self, identity: &str, tokens: usize) {
        lock(&self.0).push((identity.to_owned(), tokens));
    }
}

impl From<Calibrated> for Calibration {
    fn from(Calibrated { ladder, time, known }: Calibrated) -> Self {
        Self { ladder: ladder.into(), time, known: Box::new(known) }
    }
}

/// How a rig is built; all its devices have the same threads and budget of tokens.
#[derive(Clone)]
pub struct Settings {
    pub threads: usize,
    pub max_batch_tokens: usize,
    pub max_queue_tokens: usize,
    pub cache_bytes: u64,
    pub disk_cache: Option<DiskCache>,
    pub calibrated: Option<Calibrated>,
    /// Memory by device.
    pub memory: Vec<u64>,
}

pub fn settings() -> Settings {
    Settings {
        threads: 1,
        max_batch_tokens: 100,
        max_queue_tokens: 1000,
        cache_bytes: 0,
        disk_cache: None,
        calibrated: None,
        memory: vec![u64::MAX],
    }
}

/// One device with so much memory.
pub fn memory(bytes: u64) -> Settings {
    Settings { memory: vec![bytes], ..settings() }
}

/// Two devices.
pub fn two_devices() -> Settings {
    Settings { memory: vec![u64::MAX; 2], ..settings() }
}

/// Opens models by their scripts.
pub fn opener(scripts: Vec<Script>) -> Opener {
    Arc::new(move |declaration, _, _| {
        let script = scripts.iter().find(|script| script.id == declaration.id).expect("a script");
        (script.on_open)()?;
        Ok(script.opened(&declaration.devices))
    })
}

impl Rig {
    pub fn new(models: Vec<Declared>, settings: Settings) -> Self {
        let registry = Registry::default();
        let trims: Vec<Arc<AtomicUsize>> = settings.memory.iter().map(|_| Arc::default()).collect();
        let devices = settings.memory.iter().zip(&trims).enumerate().map(|(index, (memory, trims))| {
            let trims = Arc::clone(trims);
            DeviceSlot {
                name: format!("fake:{index}"),
                memory: *memory,
                max_batch_tokens: settings.max_batch_tokens,
                calibration: settings.calibrated.clone().map(Calibration::from),
                threads: settings.threads,
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
        let engine_settings = EngineSettings {
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
    pub fn of(script: &Script) -> Self {
        Self::new(vec![script.model(true)], settings())
    }

    /// How often freed pages of the device were given back.
    pub fn trims(&self, device: usize) -> usize {
        self.trims[device].load(Ordering::SeqCst)
    }

    /// Runs one sequence through a model.
    pub async fn ask(&self, model: &str) -> Result<(), crate::engine::EngineError> {
        let ticket = self.engine.submit(work(model, Class::Interactive, vec![ids(1, 10)])).expect("room");
        ticket.wait().await.map(drop)
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

    /// What a model has done lately.
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
            status.interactive_tokens + status.batch_tokens == 0 && status.busy_since.is_none()
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

/// A sequence of `len` ids whose first is `first`.
pub fn ids(first: u32, len: usize) -> Arc<[u32]> {
    (first..).take(len).collect()
}

pub fn work(model: &str, class: Class, sequences: Vec<Arc<[u32]>>) -> Request {
    let mut request = Request::new(model, format!("sha256:{model}").into(), class, None);
    for ids in &sequences {
        request.score(ids);
    }
    request
}

/// The statistics of the passes of a request.
pub fn stats(answered: &Answered) -> Vec<Stats> {
    answered.passes.iter().map(|pass| pass.stats().expect("an answer").clone()).collect()
}

/// What fills the masked positions of a request.
pub fn filled(answered: &Answered) -> Vec<Filled> {
    answered.passes.iter().map(|pass| pass.filled().expect("an answer").clone()).collect()
}

/// So many blanks at the first places of a sequence.
pub fn blanks(ids: &Arc<[u32]>, count: usize) -> Vec<MaskedPosition> {
    let candidates = Arc::new(Candidates { mask: 0, allowed: Arc::new([]), best: 1 });
    let blank = |position| MaskedPosition { ids: Arc::clone(ids), position, candidates: Arc::clone(&candidates) };
    (0..count).map(blank).collect()
}

pub fn fill_work(model: &str, class: Class, blanks: Vec<MaskedPosition>) -> Request {
    let mut request = Request::new(model, format!("sha256:{model}").into(), class, None);
    for blank in blanks {
        request.fill(blank);
    }
    request
}

/// Interactive work for model `m`.
pub fn client(sequences: Vec<Arc<[u32]>>) -> Request {
    work("m", Class::Interactive, sequences)
}

/// Batch work for model `m`.
pub fn audit(sequences: Vec<Arc<[u32]>>) -> Request {
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
