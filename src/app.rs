//! Wiring: settings to a running service, and its end in order.

mod budgets;
mod ending;
mod entry_control;
mod service_jobs;

use crate::api;
use crate::config::{self, AdapterSettings, LoadPolicy, Settings};
use crate::engine::{DeviceSlot, DiskCache, Engine, EngineError, EngineOptions, SpeedCalibration};
use crate::hub::{Hub, HubError};
use crate::models::demo::{DEMO, DEMO_REFERENCE};
use crate::models::device::ComputeDevice;
use crate::models::files::ModelFiles;
use crate::models::kernels::packed::Products;
use crate::models::kernels::simd;
use crate::pool::{AdapterDeclaration, AdapterSource, Declaration, Model, Opener, Origin, Pool};
use crate::scorer::{Scorer, Workers, load_token_counts};
use crate::server::{ConnectionLimits, Listener, Tls, connection_limit};
use crate::store::Store;
use crate::telemetry::MetricsExporter;
use anyhow::{Context, Result, bail};
use budgets::BudgetFiles;
use ending::{Ending, impatience};
pub use entry_control::EntryControl;
pub use service_jobs::ServiceJobs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Token budgets where the settings say `auto`.
struct Budgets {
    /// Of a batch, where none is measured.
    batch: usize,
    /// Of a batch, those that are tried.
    ladder: &'static [usize],
    /// How long they are tried.
    time: Duration,
    /// Of the queue.
    queue: usize,
}

const CPU_BUDGETS: Budgets = Budgets {
    batch: 2_048,
    // With fewer tokens than the first, reading the weights takes a part of a pass that counts, on any machine.
    ladder: &[512, 1_024, 2_048, 4_096, 8_192],
    time: Duration::from_secs(1),
    queue: 1 << 20,
};

const GPU_BUDGETS: Budgets = Budgets {
    batch: 16_384,
    ladder: &[2_048, 4_096, 8_192, 16_384, 32_768, 65_536],
    // The first pass takes the kernels to the device.
    time: Duration::from_secs(5),
    queue: 1 << 23,
};

/// Connections to the address of the metrics, at once.
const METRICS_CONNECTIONS: usize = 64;

/// The part of a device's memory that the models may take where the settings say `auto`.
const MEMORY_SHARE: f64 = 0.8;

/// One part in this many of the cache is for what is known of texts, the others for statistics, which take more room: 32
/// bytes a token and its id, against an id and two offsets.
const TEXTS_OF_CACHE: u64 = 4;

/// Starts the engine and begins to open all models that are at hand; opening and loading go on behind it.
///
/// # Errors
/// As [`make_scorer`].
pub fn start_scorer(settings: &Settings, hub: Result<Hub, HubError>, budgets: Option<PathBuf>) -> Result<Scorer> {
    let scorer = make_scorer(settings, hub, budgets)?;
    scorer.pool().begin_opening();
    Ok(scorer)
}

/// Starts the engine. Models are opened, and then loaded, as requests name them. `budgets` is the directory of measured token
/// budgets; none keeps nothing for the next start.
///
/// # Errors
/// Instructions, a device or a thread that cannot be had, or token counts that cannot be used, by name.
pub fn make_scorer(settings: &Settings, hub: Result<Hub, HubError>, budgets: Option<PathBuf>) -> Result<Scorer> {
    simd::choose(settings.engine.simd).context("`engine.simd`")?;
    Products::choose(settings.engine.products);
    let token_counts = load_token_counts(&settings.token_counts)?;
    let (mut devices, declared) = declare(settings)?;
    for device in &mut devices {
        let share = (device.memory as f64 * MEMORY_SHARE) as u64;
        device.memory = settings.engine.memory.map_or(share, |memory| memory.as_u64());
    }
    let engine = EngineOptions {
        max_queue_tokens: settings.engine.max_queue_tokens.unwrap_or_else(|| queue_tokens(&devices)),
        cache_bytes: settings.engine.cache.as_u64() / TEXTS_OF_CACHE * (TEXTS_OF_CACHE - 1),
        disk_cache: settings.engine.disk_cache.clone().map(|directory| {
            let limit = settings.engine.disk_cache_limit.as_u64();
            DiskCache { directory, limit }
        }),
    };
    let device_slots: Vec<_> = devices.iter().map(|device| device_slot(settings, device, budgets.as_deref())).collect();
    let pool = Pool::new(devices.len(), settings.default_model().map(str::to_owned), opener(devices.into(), hub));
    for declaration in declared {
        let id = declaration.id.clone();
        pool.add(declaration)?;
        for AdapterSettings { name, source } in settings.adapters_of(&id).cloned() {
            pool.add_adapter(
                &id,
                AdapterDeclaration { name, source: AdapterSource::Files(ModelFiles::Directory(source)) },
            )?;
        }
    }
    let engine = Engine::start(pool, device_slots, engine)?;
    let workers = Workers::new(settings.engine.threads)?;
    let of_texts = settings.engine.cache.as_u64() / TEXTS_OF_CACHE;
    let scorer = Scorer::new(engine, token_counts, workers, of_texts, settings.limits.text.as_u64());
    Ok(scorer.sharing_cache(settings.auth.share_cache))
}

/// How the files of models are opened: those of the Hub are fetched first, if its settings can be used.
fn opener(devices: Arc<[ComputeDevice]>, hub: Result<Hub, HubError>) -> Opener {
    Arc::new(move |declaration, previous, progress| {
        let located = declaration.origin.locate(hub.as_ref(), progress)?;
        Model::open(declaration, located, &devices, previous)
    })
}

/// The Hub as this process's environment says: `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE`. A fault in it is
/// one of the models that come from there, and of no other.
pub fn hub() -> Result<Hub, HubError> {
    Hub::from_environment(|name| std::env::var(name).ok())
}

/// The directory in which this user's programs remember measured token budgets: `XDG_CACHE_HOME` or `HOME` say where.
pub fn budget_directory() -> Option<PathBuf> {
    budgets::directory(|name| std::env::var(name).ok())
}

/// The devices that are in use, and the models with their places on them.
fn declare(settings: &Settings) -> Result<(Vec<ComputeDevice>, Vec<Declaration>)> {
    let mut devices = Vec::new();
    let main = place(&mut devices, settings.engine.device)?;
    let mut declared = Vec::new();
    if settings.models.is_empty() {
        let demo = |id: &str, files, reference: Option<&str>| Declaration {
            id: id.to_owned(),
            origin: Origin::Files(files),
            dtype: settings.engine.dtype,
            reference: reference.map(str::to_owned),
            eager: true,
            pinned: false,
            devices: vec![main],
        };
        declared.push(demo(config::DEMO, DEMO, Some(config::DEMO_REFERENCE)));
        declared.push(demo(config::DEMO_REFERENCE, DEMO_REFERENCE, None));
    }
    for model in &settings.models {
        let mut places = Vec::new();
        for &device in &model.device {
            let index = match device {
                config::DeviceChoice::Auto => main,
                device => place(&mut devices, device).with_context(|| format!("model `{}`", model.id))?,
            };
            if !places.contains(&index) {
                places.push(index);
            }
        }
        if places.iter().any(|&index| devices[index].device.is_cpu()) && places.len() > 1 {
            bail!("model `{}`: replicas on the CPU and on a GPU would not give the same scores", model.id);
        }
        declared.push(Declaration {
            id: model.id.clone(),
            origin: Origin::configured(model),
            dtype: if model.dtype == config::Dtype::Auto { settings.engine.dtype } else { model.dtype },
            reference: model.reference.clone(),
            eager: model.load == LoadPolicy::Eager,
            pinned: model.pinned,
            devices: places,
        });
    }
    let devices = devices.into_iter().map(|device| device.with_threads(settings.engine.threads));
    Ok((devices.collect(), declared))
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

fn device_slot(settings: &Settings, device: &ComputeDevice, directory: Option<&Path>) -> DeviceSlot {
    let config::EngineSettings { max_batch_tokens, calibrate, .. } = settings.engine;
    let budgets = budgets(device);
    let calibrated = calibrate && max_batch_tokens.is_none();
    let trimmed = device.clone();
    DeviceSlot {
        name: device.name.clone(),
        memory: device.memory,
        max_batch_tokens: max_batch_tokens.unwrap_or(budgets.batch),
        calibration: calibrated.then(|| SpeedCalibration {
            ladder: budgets.ladder.into(),
            time: budgets.time,
            known: Box::new(BudgetFiles {
                directory: directory.map(Path::to_owned),
                device: device.name.clone(),
                hardware: device.hardware(),
                threads: device.threads,
            }),
        }),
        threads: device.threads,
        trim: Box::new(move || trimmed.trim()),
    }
}

fn queue_tokens(devices: &[ComputeDevice]) -> usize {
    devices.iter().map(|device| budgets(device).queue).sum()
}

fn budgets(device: &ComputeDevice) -> &'static Budgets {
    if device.device.is_cpu() { &CPU_BUDGETS } else { &GPU_BUDGETS }
}

/// Serves until a signal ends it or the device is lost.
///
/// # Errors
/// What keeps the service from starting, or the loss of the device.
pub async fn serve(mut settings: Settings) -> Result<()> {
    let metrics = MetricsExporter::install()?;
    tokio::spawn({
        let metrics = metrics.clone();
        async move { metrics.run_upkeep().await }
    });
    refuse_strangers(&settings)?;
    let entry = EntryControl::open(&settings)?;
    entry.reload_on_hangup();
    let listener = listen(&settings, entry.tls.clone()).await?;
    let metrics_listener = listen_for_metrics(&settings).await?;
    let store = open_store(&settings).await?;
    settings.engine.disk_cache = settings.engine.disk_cache.or_else(|| settings.store.statistics());
    let scorer = start_scorer(&settings, hub(), budget_directory())?;
    let engine = scorer.engine().clone();
    let jobs = ServiceJobs::start(&scorer, &store, &settings).await?;
    let state = entry.guard(api::ApiState::new(scorer, jobs.routed.clone(), metrics, &settings));
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    tracing::info!("listening on {scheme}://{}, documentation at /docs", listener.address()?);
    match &metrics_listener {
        Some(listener) => tracing::info!("metrics at http://{}/metrics", listener.address()?),
        None if settings.auth.keys.is_some() => {
            tracing::warn!("there are keys and no `server.metrics`: nobody sees the metrics")
        }
        None => {}
    }
    tokio::spawn(report_loading(engine.clone()));

    let (lost, grace) = (engine.clone(), settings.server.request_timeout);
    let closing = CancellationToken::new();
    let (draining, delay) = (state.draining.clone(), settings.server.drain_delay);
    let ending = Ending { draining, delay, closing: closing.clone() };
    let jobs_end = tokio::spawn({
        let closing = closing.clone();
        async move {
            closing.cancelled().await;
            jobs.shutdown().await;
        }
    });
    if let Some(listener) = metrics_listener {
        // To the end: who watches the service sees it drain.
        tokio::spawn(listener.serve(api::metrics_router(state.clone()), std::future::pending()));
    }
    let server = listener.serve(api::router(state), ending.listener_closes());
    tokio::select! {
        () = server => {}
        why = lost.device_lost() => bail!("the device is lost: {why}"),
        () = impatience(closing, grace) => tracing::warn!("requests were still open and are cut off"),
    }
    jobs_end.await?;
    tokio::task::spawn_blocking(move || entry.finish()).await?;
    store.close().await;
    tokio::task::spawn_blocking(move || engine.shutdown(Duration::ZERO)).await?;
    tracing::info!("stopped");
    Ok(())
}

/// Refuses to serve others than this machine without keys, unless the settings ask for it.
fn refuse_strangers(settings: &Settings) -> Result<()> {
    let config::ServerSettings { host, insecure_no_auth, .. } = &settings.server;
    if settings.server.is_local() || settings.auth.keys.is_some() || *insecure_no_auth {
        return Ok(());
    }
    bail!(
        "`server.host` is {host}, so that other machines reach the service, and it asks nobody for a key: make keys with \
         `pdr-audit key new` and name their file in `auth.keys`, or say --insecure-no-auth where only trusted programs reach it"
    )
}

async fn listen(settings: &Settings, tls: Option<Tls>) -> Result<Listener> {
    let server = &settings.server;
    let limits = ConnectionLimits {
        header_timeout: server.header_timeout,
        write_timeout: server.write_timeout,
        connections: connection_limit(server.connections),
    };
    if let Some(wanted) = server.connections.filter(|wanted| *wanted > limits.connections) {
        let possible = limits.connections;
        tracing::warn!(
            wanted,
            possible,
            "`server.connections` is more than the files that the process may open are enough for"
        );
    }
    let (host, port) = (server.host.as_str(), server.port);
    Listener::bind((host, port), limits, tls).await.with_context(|| format!("cannot listen on {host}:{port}"))
}

async fn listen_for_metrics(settings: &Settings) -> Result<Option<Listener>> {
    let Some(address) = settings.server.metrics else { return Ok(None) };
    let config::ServerSettings { header_timeout, write_timeout, .. } = settings.server;
    let limits = ConnectionLimits { header_timeout, write_timeout, connections: METRICS_CONNECTIONS };
    let (host, port) = (address.ip().to_string(), address.port());
    let bound = Listener::bind((&host, port), limits, None).await;
    bound.map(Some).with_context(|| format!("`server.metrics`: cannot listen on {address}"))
}

/// Opens the store, and says where it is.
async fn open_store(settings: &Settings) -> Result<Store> {
    let store = Store::open(settings.store.url.as_ref()).await.context("`store.url`")?;
    store.limit_memory(settings.store.memory.as_u64()).await.context("`store.memory`")?;
    match &settings.store.url {
        None => tracing::info!(
            "audits, fine-tunes and datasets live in memory and end with the process (`store.url` is not set)"
        ),
        Some(url) => tracing::info!(store = ?url, "audits, fine-tunes and datasets are kept"),
    }
    Ok(store)
}

async fn report_loading(engine: Engine) {
    if let Err(EngineError::LoadFailed(reason)) = engine.wait_until_loaded().await {
        tracing::error!(reason, "not ready; eager models are tried again");
    }
    engine.wait_until_ready().await;
    tracing::info!("ready: all eager models are loaded");
}
