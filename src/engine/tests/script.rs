//! Fake models whose every forward pass is recorded and scripted.

use crate::engine::Stats;
use crate::pool::tests::{declaration, model};
use crate::pool::{Declaration, Loader, Model, Opener};
use lm::models::layers::LayerPlacement;
use lm::models::lora::LoadedAdapter;
use lm::models::masked::{Filled, MaskedPosition};
use lm::models::{BatchStats, CausalLm, Continuation, GreedyPrompt, LoadedModel, MaskedLm, ModelError, Pending};
use mia::TokenStats;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Called before a forward pass on a device: it may wait, fail or panic.
type Hook = Arc<dyn Fn(usize, &[&[u32]]) -> Result<(), ModelError> + Send + Sync>;

/// Called before a load to a device.
type LoadHook = Arc<dyn Fn(usize) -> Result<(), ModelError> + Send + Sync>;

/// Called before the files are opened.
type OpenHook = Arc<dyn Fn() -> Result<(), ModelError> + Send + Sync>;

/// A forward pass: on which device, with which sequences.
type Forward = (usize, Vec<Vec<u32>>);

/// A model in the rig's hands. Clones are the same one.
#[derive(Clone)]
pub struct Script {
    id: &'static str,
    pub masked: bool,
    /// True if it is served elsewhere.
    elsewhere: bool,
    /// True if its layers are streamed.
    streamed: bool,
    weight_bytes: u64,
    bytes_per_token: u64,
    on_forward: Hook,
    /// Called when a forward pass is waited for; if `None`, the pass is done when it has begun.
    on_finish: Option<Hook>,
    /// Called when it is asked whether it can run.
    on_probe: LoadHook,
    on_load: LoadHook,
    on_open: OpenHook,
    /// Loader used in its place.
    loader: Option<Loader>,
    forwards: Arc<Mutex<Vec<Forward>>>,
    copies: Arc<AtomicUsize>,
}

/// A model as it is declared, and the script of its files.
pub struct Declared {
    pub declaration: Declaration,
    pub script: Script,
    /// True if its files are open before the engine starts.
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
            elsewhere: false,
            streamed: false,
            weight_bytes: 0,
            bytes_per_token: 0,
            on_forward: Arc::new(|_, _| Ok(())),
            on_finish: None,
            on_probe: Arc::new(|_| Ok(())),
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

    /// A model that is served elsewhere.
    pub fn elsewhere(mut self) -> Self {
        self.elsewhere = true;
        self
    }

    /// A model whose layers are streamed.
    pub fn streamed(mut self) -> Self {
        self.streamed = true;
        self
    }

    /// Sets what it takes of a device: weights, and activations per token.
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

    /// As a model on a GPU, which works on a pass while the next one begins.
    pub fn on_finish(mut self, hook: impl Fn(&[&[u32]]) -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_finish = Some(Arc::new(move |_, sequences| hook(sequences)));
        self
    }

    pub fn on_probe(mut self, hook: impl Fn(usize) -> Result<(), ModelError> + Send + Sync + 'static) -> Self {
        self.on_probe = Arc::new(hook);
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
        let declaration = declaration(self.id, eager, &[0]);
        Declared { declaration, script: self.clone(), opened: true }
    }

    /// The same, but this is loaded.
    pub fn loading(&self, loader: Loader) -> Self {
        Self { loader: Some(loader), ..self.clone() }
    }

    /// Returns the model that its files describe.
    pub fn opened(&self, devices: &[usize]) -> Arc<Model> {
        let (script, per_token) = (self.clone(), self.bytes_per_token);
        let model = model(self.id, &format!("sha256:{}", self.id), devices);
        Arc::new(Model {
            context: Some(5000),
            longest: 5000,
            vocab_size: 100_000,
            ends: model.ends.clone(),
            masked: self.masked,
            layers: self.streamed.then_some(LayerPlacement::Streamed),
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
            local: model.local.filter(|_| !self.elsewhere),
            ..model
        })
    }

    /// Returns the number of copies of it in memory.
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

    /// Returns the number of forward passes that ran on the device.
    pub fn forwards_on(&self, device: usize) -> usize {
        lock(&self.forwards).iter().filter(|(on, _)| *on == device).count()
    }

    pub fn run(&self, device: usize, sequences: &[&[u32]]) -> Result<BatchStats, ModelError> {
        let batch = sequences.iter().map(|ids| ids.to_vec()).collect();
        lock(&self.forwards).push((device, batch));
        (self.on_forward)(device, sequences)?;
        Ok(sequences.iter().map(|ids| fake_stats(self.id, ids).to_vec()).collect())
    }
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
    fn begin(&self, sequences: &[&[u32]], _: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        let (stats, device) = (self.script.run(self.device, sequences)?, self.device);
        let Some(hook) = self.script.on_finish.clone() else { return Ok(Pending::Ready(stats)) };
        let sequences: Vec<Vec<u32>> = sequences.iter().map(|ids| ids.to_vec()).collect();
        Ok(Pending::queued(move || {
            hook(device, &sequences.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
            Ok(stats)
        }))
    }

    fn begin_continuation(
        &self,
        prompts: &[&GreedyPrompt],
        _: Option<&LoadedAdapter>,
    ) -> Result<Pending<Vec<Continuation>>, ModelError> {
        let inputs: Vec<Vec<u32>> = prompts.iter().map(|prompt| prompt.input()).collect();
        self.script.run(self.device, &inputs.iter().map(Vec::as_slice).collect::<Vec<_>>())?;
        let continued = |(prompt, input): (&&GreedyPrompt, &Vec<u32>)| {
            let ends = prompt.ids.len()..=input.len();
            prompt.accepted(&ends.map(|end| fake_next(self.script.id, &input[..end])).collect::<Vec<_>>())
        };
        Ok(Pending::Ready(prompts.iter().zip(&inputs).map(continued).collect()))
    }

    fn probe(&self) -> Result<(), ModelError> {
        (self.script.on_probe)(self.device)
    }
}

impl MaskedLm for Running {
    fn fill(&self, blanks: &[&MaskedPosition]) -> Result<Vec<Filled>, ModelError> {
        let sequences: Vec<&[u32]> = blanks.iter().map(|blank| &*blank.ids).collect();
        self.script.run(self.device, &sequences)?;
        Ok(blanks.iter().map(|blank| fake_filled(self.script.id, blank)).collect())
    }
}

/// Returns what the fake model puts into a blank: it depends on the model, on all ids and on the place.
pub fn fake_filled(model: &str, blank: &MaskedPosition) -> Filled {
    let stats = fake_stats(model, &blank.ids);
    let p_original = stats.last().map_or(0.0, |stats| stats.lp) + blank.position as f64;
    Filled { p_original, best: vec![(blank.position as u32, p_original)] }
}

/// Returns the fake model's first choice behind ids: it depends on the model and on all of them.
pub fn fake_next(model: &str, ids: &[u32]) -> u32 {
    let salt = model.bytes().map(u32::from).sum::<u32>();
    ids.iter().fold(salt, |seen, id| (seen * 31 + id) % 99_991)
}

/// Returns the fake model's statistics of a sequence: every entry depends on the model and on all ids up to it.
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

/// Opens models by their scripts.
pub fn opener(scripts: Vec<Script>) -> Opener {
    Arc::new(move |declaration, _, _| {
        let script = scripts.iter().find(|script| script.id == declaration.id).expect("a script");
        (script.on_open)()?;
        Ok(script.opened(&declaration.devices))
    })
}

/// A model that stands before the latch in every load until it is opened.
pub fn slow_to_load(id: &'static str) -> (Script, Arc<Latch>) {
    let latch = Arc::new(Latch::default());
    let inner = Arc::clone(&latch);
    let script = Script::new(id).on_load(move || {
        inner.pass();
        Ok(())
    });
    (script, latch)
}

pub fn missing() -> ModelError {
    ModelError::File { path: "model.safetensors".to_owned(), reason: "not there".to_owned() }
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
