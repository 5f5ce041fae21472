//! The devices that are in use, and the models with their places on them.

use crate::config::{self, LayersChoice, LoadPolicy, ModelSettings, ServedKind, ServedSettings, Settings};
use crate::engine::{Circuit, DeviceSlot};
use crate::pool::{Declaration, Origin};
use anyhow::{Context, Result, bail};
use lm::models::demo::{DEMO, DEMO_REFERENCE};
use lm::models::device::ComputeDevice;
use std::sync::Arc;

/// Token budgets where the settings say `auto`.
struct Budgets {
    batch: usize,
    queue: usize,
}

const CPU_BUDGETS: Budgets = Budgets { batch: 2_048, queue: 1 << 20 };

const GPU_BUDGETS: Budgets = Budgets { batch: 16_384, queue: 1 << 23 };

/// The largest token budget of a batch of a model whose layers are streamed: reading them takes less time than computing on so many
/// tokens, unless the disk is very slow.
const STREAMED_BATCH: usize = 32_768;

/// The token budgets of a server of a model that is served elsewhere: of a batch, and of the queue.
const SERVER_BATCH: usize = 4_096;
const SERVER_QUEUE: usize = 1 << 20;

/// The part of a device's memory that the models may take where the settings say `auto`.
const MEMORY_SHARE: f64 = 0.8;

/// Models and devices that the settings declare.
pub struct DeclaredModels {
    /// The devices of this machine; the first ones of the engine.
    pub devices: Vec<ComputeDevice>,
    /// The servers elsewhere, which are devices too; those of the engine after the others.
    pub servers: Vec<ServerSlot>,
    /// The models with their places on both.
    pub models: Vec<Declaration>,
}

/// A server of a model that is served elsewhere.
pub struct ServerSlot {
    name: String,
    max_batch_tokens: usize,
    /// The failures of the server; those of one server are shared by its connections.
    circuit: Arc<Circuit>,
}

/// The devices that are in use, and the models with their places on them.
///
/// # Errors
/// A device that cannot be had, or a key that is missing, by name.
pub fn declare(settings: &Settings) -> Result<DeclaredModels> {
    let mut devices = Vec::new();
    let main = place(&mut devices, settings.engine.device)?;
    for model in settings.models.iter().filter(|model| model.served.is_none()) {
        places(&mut devices, main, model).with_context(|| format!("model `{}`", model.id))?;
    }
    let (mut servers, mut models) = (Vec::new(), demos(settings, main));
    for model in &settings.models {
        let context = || format!("model `{}`", model.id);
        let places = match &model.served {
            None => places(&mut devices, main, model).with_context(context)?,
            Some(served) => {
                let first = devices.len() + servers.len();
                servers.extend(server_slots(settings, &model.id, served));
                (first..devices.len() + servers.len()).collect()
            }
        };
        models.push(Declaration {
            id: model.id.clone(),
            origin: Origin::configured(model).with_context(context)?,
            dtype: if model.dtype == config::Dtype::Auto { settings.engine.dtype } else { model.dtype },
            layers: model.layers,
            reference: model.reference.clone().or_else(|| model.base.clone()),
            base: model.base.clone(),
            eager: model.load == LoadPolicy::Eager,
            pinned: model.pinned,
            devices: places,
        });
    }
    let devices = devices.into_iter().map(|device| {
        let share = (device.memory as f64 * MEMORY_SHARE) as u64;
        let memory = settings.engine.memory.map_or(share, |memory| memory.as_u64());
        ComputeDevice { memory, ..device.with_threads(settings.engine.threads) }
    });
    Ok(DeclaredModels { devices: devices.collect(), servers, models })
}

/// The embedded models, where no others are configured.
fn demos(settings: &Settings, main: usize) -> Vec<Declaration> {
    if !settings.models.is_empty() {
        return Vec::new();
    }
    let demo = |id: &str, files, reference: Option<&str>| Declaration {
        id: id.to_owned(),
        origin: Origin::Files(files),
        dtype: settings.engine.dtype,
        layers: LayersChoice::Resident,
        reference: reference.map(str::to_owned),
        base: None,
        eager: true,
        pinned: false,
        devices: vec![main],
    };
    vec![demo(config::DEMO, DEMO, Some(config::DEMO_REFERENCE)), demo(config::DEMO_REFERENCE, DEMO_REFERENCE, None)]
}

/// The indexes of the devices of a model that runs here; those that are not in use yet are opened.
fn places(devices: &mut Vec<ComputeDevice>, main: usize, model: &ModelSettings) -> Result<Vec<usize>> {
    let mut places = Vec::new();
    for &device in &model.device {
        let index = match device {
            config::DeviceChoice::Auto => main,
            device => place(devices, device)?,
        };
        if !places.contains(&index) {
            places.push(index);
        }
    }
    if places.iter().any(|&index| devices[index].device.is_cpu()) && places.len() > 1 {
        bail!("replicas on the CPU and on a GPU would not give the same scores");
    }
    Ok(places)
}

/// The servers of a model, each as often as it runs batches at once, in the order of their URLs, which their names do not disclose.
fn server_slots(settings: &Settings, id: &str, served: &ServedSettings) -> Vec<ServerSlot> {
    let budget = served.max_batch_tokens.or(settings.engine.max_batch_tokens).unwrap_or(SERVER_BATCH);
    let name = |url: usize, connection: usize| match served.connections {
        1 => format!("{id}/{url}"),
        _ => format!("{id}/{url}/{connection}"),
    };
    let mut slots = Vec::new();
    for url in 1..=served.urls.len() {
        let one: Arc<Circuit> = Arc::default();
        // A URL of several connections is several engines of this program, or one server of another kind.
        let circuit = || if served.kind == Some(ServedKind::PdrAudit) { Arc::default() } else { Arc::clone(&one) };
        let slot =
            |connection| ServerSlot { name: name(url, connection), max_batch_tokens: budget, circuit: circuit() };
        slots.extend((1..=served.connections).map(slot));
    }
    slots
}

impl ServerSlot {
    /// The server as the engine knows it: it takes no memory of this machine, and computes with threads of its own.
    pub fn device_slot(&self) -> DeviceSlot {
        DeviceSlot {
            name: self.name.clone(),
            memory: 0,
            max_batch_tokens: self.max_batch_tokens,
            max_streamed_tokens: self.max_batch_tokens,
            threads: 1,
            server: Arc::clone(&self.circuit),
            trim: Box::new(|| ()),
        }
    }
}

/// The index of a device among those in use; opened now if it is not there yet.
fn place(devices: &mut Vec<ComputeDevice>, wanted: config::DeviceChoice) -> Result<usize> {
    let name = match wanted {
        config::DeviceChoice::Auto => None,
        config::DeviceChoice::Cpu => Some("cpu".to_owned()),
        config::DeviceChoice::Cuda(index) => Some(format!("cuda:{index}")),
    };
    if let Some(index) = devices.iter().position(|known| Some(&known.name) == name.as_ref()) {
        return Ok(index);
    }
    devices.push(ComputeDevice::open(wanted)?);
    Ok(devices.len() - 1)
}

/// A device as the engine knows it.
pub fn device_slot(settings: &Settings, device: &ComputeDevice) -> DeviceSlot {
    let trimmed = device.clone();
    DeviceSlot {
        name: device.name.clone(),
        memory: device.memory,
        max_batch_tokens: settings.engine.max_batch_tokens.unwrap_or(budgets(device).batch),
        max_streamed_tokens: settings.engine.max_batch_tokens.unwrap_or(STREAMED_BATCH),
        threads: device.threads,
        server: Arc::default(),
        trim: Box::new(move || trimmed.trim()),
    }
}

/// Returns the maximum number of tokens admitted and not yet answered if the settings say `auto`.
pub fn queue_tokens(devices: &[ComputeDevice], servers: &[ServerSlot]) -> usize {
    devices.iter().map(|device| budgets(device).queue).sum::<usize>() + servers.len() * SERVER_QUEUE
}

fn budgets(device: &ComputeDevice) -> &'static Budgets {
    if device.device.is_cpu() { &CPU_BUDGETS } else { &GPU_BUDGETS }
}
