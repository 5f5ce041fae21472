//! The service over golden models that a test tampers with: a forward pass may wait, fail, panic or give other numbers.

use super::app::{App, GOLDEN, golden};
use lm::hub::HubError;
use lm::models::device::ComputeDevice;
use lm::models::lora::LoadedAdapter;
use lm::models::{BatchStats, CausalLm, LoadedModel, ModelError, Pending};
use pdr_audit::config::{Dtype, LayersChoice, Settings};
use pdr_audit::engine::{DeviceSlot, Engine, EngineOptions};
use pdr_audit::pool::{Declaration, Loader, Model, Opener, Origin, Pool};
use pdr_audit::scorer::{Scorer, Workers};
use pdr_audit::telemetry::MetricsExporter;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Mark in a text that makes its model behave as the test wants; one token, whatever is around it.
pub const MARK: &str = "%";

/// Far above what a test sends at once, so that no batch is full and none tells how fast a model is: a pass that a test holds up
/// must not have later requests refused.
const BATCH_TOKENS: usize = 8_192;

/// Behaviour of a model on a batch.
pub type Behaviour = Arc<dyn Fn(&Batch) -> Result<BatchStats, ModelError> + Send + Sync>;

/// A batch on its way to the model.
pub struct Batch<'a> {
    pub sequences: &'a [&'a [u32]],
    model: &'a dyn CausalLm,
    mark: u32,
}

impl Batch<'_> {
    /// True if the sequence has the mark.
    pub fn is_marked(&self, sequence: &[u32]) -> bool {
        sequence.contains(&self.mark)
    }

    /// True if one of its sequences has the mark.
    pub fn has_mark(&self) -> bool {
        self.sequences.iter().any(|sequence| self.is_marked(sequence))
    }

    /// Runs the model on the batch.
    pub fn run(&self) -> Result<BatchStats, ModelError> {
        self.model.token_stats(self.sequences)
    }
}

struct Tampered {
    model: Box<dyn CausalLm>,
    behaviour: Behaviour,
    mark: u32,
}

impl CausalLm for Tampered {
    fn begin(&self, sequences: &[&[u32]], _: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError> {
        (self.behaviour)(&Batch { sequences, model: &*self.model, mark: self.mark }).map(Pending::Ready)
    }
}

/// A model that does what it always does.
pub fn sound() -> Behaviour {
    Arc::new(|batch| batch.run())
}

/// The service over models of these ids, each on a device of its own. The first is the default.
pub async fn tampered(change: impl FnOnce(&mut Settings), models: Vec<(&'static str, Behaviour)>) -> App {
    let mut settings = Settings::default();
    change(&mut settings);
    // The engine counts into the recorder that is there when it starts.
    MetricsExporter::install().unwrap();
    let devices: Arc<[ComputeDevice]> = (0..models.len()).map(device).collect();
    let slots = devices.iter().map(slot).collect();
    let ids: Vec<&str> = models.iter().map(|(id, _)| *id).collect();
    let pool = Pool::new(devices.len(), ids.first().map(|id| (*id).to_owned()), opener(devices, models));
    for (device, id) in ids.into_iter().enumerate() {
        pool.add(declaration(id, device)).unwrap();
    }
    let max_queue_tokens = settings.engine.max_queue_tokens.unwrap_or(1 << 20);
    let options = EngineOptions { max_queue_tokens, cache_bytes: 1 << 20, disk_cache: None };
    let engine = Engine::start(pool, slots, options).unwrap();
    let (workers, longest) = (Workers::new(1).unwrap(), settings.limits.text.as_u64());
    let scorer = Scorer::new(engine, Vec::new(), workers, 1 << 20, longest);
    scorer.pool().begin_opening();
    let app = App::over_scorer(&settings, scorer).await;
    app.engine.wait_until_loaded().await.unwrap();
    app
}

fn device(index: usize) -> ComputeDevice {
    ComputeDevice { name: format!("cpu-{index}"), ..ComputeDevice::cpu().with_threads(1) }
}

fn slot(device: &ComputeDevice) -> DeviceSlot {
    DeviceSlot {
        name: device.name.clone(),
        memory: 1 << 32,
        max_batch_tokens: BATCH_TOKENS,
        max_streamed_tokens: BATCH_TOKENS,
        threads: 1,
        server: Arc::default(),
        trim: Box::new(|| {}),
    }
}

fn declaration(id: &str, device: usize) -> Declaration {
    Declaration {
        id: id.to_owned(),
        origin: Origin::configured(&golden(id, GOLDEN)).unwrap(),
        dtype: Dtype::Auto,
        layers: LayersChoice::Auto,
        reference: None,
        base: None,
        eager: true,
        pinned: false,
        devices: vec![device],
    }
}

fn opener(devices: Arc<[ComputeDevice]>, models: Vec<(&'static str, Behaviour)>) -> Opener {
    Arc::new(move |declaration, _, progress| {
        let located = declaration.origin.locate(Err(&HubError::Cancelled), progress)?;
        let opened = Model::open(declaration, located, &devices, None)?;
        let (_, behaviour) = models.iter().find(|(id, _)| *id == declaration.id).expect("a behaviour");
        Ok(Arc::new(Model { load: loader(&opened, behaviour), ..Model::clone(&opened) }))
    })
}

fn loader(opened: &Model, behaviour: &Behaviour) -> Loader {
    let mark = opened.tokenizer.plain_ids(MARK).unwrap();
    assert_eq!(mark.len(), 1, "the mark is one token");
    let (load, behaviour, mark) = (Arc::clone(&opened.load), Arc::clone(behaviour), mark[0]);
    Arc::new(move |place| {
        let model = load(place)?.causal().expect("a causal model");
        Ok(LoadedModel::Causal(Box::new(Tampered { model, behaviour: Arc::clone(&behaviour), mark })))
    })
}

/// Holds up whoever passes it until it is opened.
pub struct Latch {
    /// Number of arrivals.
    arrivals: watch::Sender<usize>,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Latch {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { arrivals: watch::Sender::new(0), is_open: Mutex::default(), opened: Condvar::new() })
    }

    /// Waits until it is open.
    pub fn pass(&self) {
        self.arrivals.send_modify(|arrivals| *arrivals += 1);
        let is_open = self.is_open.lock().unwrap_or_else(PoisonError::into_inner);
        // A test that fails before it opens the latch must end all the same.
        let _ = self.opened.wait_timeout_while(is_open, Duration::from_secs(120), |is_open| !*is_open);
    }

    pub fn open(&self) {
        *self.is_open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Waits until somebody has come to it.
    pub async fn reached(&self) {
        self.arrivals.subscribe().wait_for(|arrivals| *arrivals > 0).await.unwrap();
    }

    /// A model that stands before it with every batch that has the mark.
    pub fn before_marked(self: &Arc<Self>) -> Behaviour {
        let latch = Arc::clone(self);
        Arc::new(move |batch| {
            if batch.has_mark() {
                latch.pass();
            }
            batch.run()
        })
    }
}
