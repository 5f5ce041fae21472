//! Wiring: settings to a running service, and its end in order.

mod check;
mod devices;
mod signals;
mod signing;

use crate::api::{self, JobContext, JobKinds, RoutedJobs};
use crate::config::{self, AdapterSettings, Settings};
use crate::engine::{DiskCache, Engine, EngineError, EngineOptions};
use crate::finetunes::AdapterShelf;
use crate::pool::{AdapterDeclaration, AdapterSource, Model, Opener, Origin, Pool};
use crate::scorer::{Scorer, Workers, load_token_counts};
use crate::server::{ConnectionLimits, Listener, Tls, address_limit, connection_limit};
use crate::store::Store;
use crate::telemetry::MetricsExporter;
use anyhow::{Context, Result, bail};
pub use check::{CheckedPart, check};
use devices::{DeclaredModels, ServerSlot, declare, device_slot, queue_tokens};
use kernels::simd;
use lm::hub::{Hub, HubError};
use lm::models::device::ComputeDevice;
use lm::models::files::ModelFiles;
pub use signals::EntryControl;
use signals::{Ending, impatience};
pub use signing::{read_signing_key, signing_key};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Connections to the address of the metrics, at once.
const METRICS_CONNECTIONS: usize = 64;

/// One part in this many of the cache is for what is known of texts, the others for statistics, which take more room: 32
/// bytes a token and its id, against an id and two offsets.
const TEXTS_OF_CACHE: u64 = 4;

/// Starts the engine and begins to open all models that are at hand; opening and loading go on behind it.
///
/// # Errors
/// As [`make_scorer`].
pub fn start_scorer(settings: &Settings, hub: Result<Hub, HubError>) -> Result<Scorer> {
    let scorer = make_scorer(settings, hub)?;
    scorer.pool().begin_opening();
    Ok(scorer)
}

/// Starts the engine. Models are opened, and then loaded, as requests name them.
///
/// # Errors
/// Instructions, a device or a thread that cannot be had, or token counts that cannot be used, by name.
pub fn make_scorer(settings: &Settings, hub: Result<Hub, HubError>) -> Result<Scorer> {
    simd::force_from_environment().map_err(anyhow::Error::msg)?;
    let token_counts = load_token_counts(&settings.token_counts)?;
    let DeclaredModels { devices, servers, models } = declare(settings)?;
    let engine = EngineOptions {
        max_queue_tokens: settings.engine.max_queue_tokens.unwrap_or_else(|| queue_tokens(&devices, &servers)),
        cache_bytes: settings.engine.cache.as_u64() / TEXTS_OF_CACHE * (TEXTS_OF_CACHE - 1),
        disk_cache: settings.engine.disk_cache.clone().map(|directory| {
            let limit = settings.engine.disk_cache_limit.as_u64();
            DiskCache { directory, limit }
        }),
    };
    let of_devices = devices.iter().map(|device| device_slot(settings, device));
    let slots: Vec<_> = of_devices.chain(servers.iter().map(ServerSlot::device_slot)).collect();
    let pool = Pool::new(slots.len(), settings.default_model().map(str::to_owned), opener(devices.into(), hub));
    for declaration in models {
        let id = declaration.id.clone();
        pool.add(declaration)?;
        for AdapterSettings { name, source } in settings.adapters_of(&id).cloned() {
            pool.add_adapter(
                &id,
                AdapterDeclaration { name, source: AdapterSource::Files(ModelFiles::Directory(source)) },
            )?;
        }
    }
    let engine = Engine::start(pool, slots, engine)?;
    let workers = Workers::new(settings.engine.threads)?;
    let of_texts = settings.engine.cache.as_u64() / TEXTS_OF_CACHE;
    let scorer = Scorer::new(engine, token_counts, workers, of_texts, settings.limits.text.as_u64());
    Ok(scorer.sharing_cache(settings.auth.share_cache))
}

/// Returns the opener of models: it first downloads files of the Hub, if its settings are valid, and queries remote servers.
fn opener(devices: Arc<[ComputeDevice]>, hub: Result<Hub, HubError>) -> Opener {
    Arc::new(move |declaration, previous, progress| match &declaration.origin {
        Origin::Served(served) => {
            let tokenizer = served.locate_tokenizer(hub.as_ref(), progress)?;
            Model::open_served(declaration, &served.source, tokenizer, previous)
        }
        origin => Model::open(declaration, origin.locate(hub.as_ref(), progress)?, &devices, previous),
    })
}

/// The Hub as this process's environment says: `HF_HOME`, `HF_ENDPOINT`, `HF_TOKEN` and `HF_HUB_OFFLINE`. A fault in it is
/// one of the models that come from there, and of no other.
pub fn hub() -> Result<Hub, HubError> {
    Hub::from_environment(|name| std::env::var(name).ok())
}

/// Serves until a signal ends it or the device is lost.
///
/// # Errors
/// Any fault that keeps the service from starting, or the loss of the device.
pub async fn serve(mut settings: Settings) -> Result<()> {
    let metrics = MetricsExporter::install()?;
    tokio::spawn({
        let metrics = metrics.clone();
        async move { metrics.run_upkeep().await }
    });
    refuse_strangers(&settings)?;
    let entry = EntryControl::open(&settings)?;
    let signing_key = signing_key(&settings)?.map(Arc::new);
    entry.note_start(&settings);
    entry.reload_on_hangup();
    let listener = listen(&settings, entry.tls.clone()).await?;
    let metrics_listener = listen_for_metrics(&settings).await?;
    let store = open_store(&settings).await?;
    settings.engine.disk_cache = settings.engine.disk_cache.or_else(|| settings.store.statistics());
    let scorer = start_scorer(&settings, hub())?;
    let (engine, kinds) = (scorer.engine().clone(), api::JobKinds::all());
    let jobs = ServiceJobs::start(&kinds, &scorer, &store, &settings).await?;
    let state = api::ApiState { signing_key, ..api::ApiState::new(scorer, jobs.routed.clone(), metrics, &settings) };
    let state = entry.guard(state);
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
    let server = listener.serve(api::router(state, &kinds), ending.listener_closes());
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
    let connections = connection_limit(server.connections);
    let limits = ConnectionLimits {
        header_timeout: server.header_timeout,
        write_timeout: server.write_timeout,
        connections,
        per_address: address_limit(server.connections_per_address, connections),
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
    let connections = METRICS_CONNECTIONS;
    let limits = ConnectionLimits { header_timeout, write_timeout, connections, per_address: connections };
    let (host, port) = (address.ip().to_string(), address.port());
    let bound = Listener::bind((&host, port), limits, None).await;
    bound.map(Some).with_context(|| format!("`server.metrics`: cannot listen on {address}"))
}

/// Opens the store, and says where it is.
///
/// # Errors
/// Where it cannot be opened, by the setting.
pub async fn open_store(settings: &Settings) -> Result<Store> {
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

/// Jobs of every kind.
#[derive(Clone)]
pub struct ServiceJobs {
    pub routed: RoutedJobs,
    closing: CancellationToken,
}

impl ServiceJobs {
    /// Runs the jobs of these kinds that are in the store, and those that are submitted, from now on. The models of the scorer get
    /// the adapters that are in the store.
    ///
    /// # Errors
    /// [`StoreError`](crate::store::StoreError) where the adapters cannot be listed.
    pub async fn start(kinds: &JobKinds, scorer: &Scorer, store: &Store, settings: &Settings) -> anyhow::Result<Self> {
        let shelf = AdapterShelf::new(store.clone(), scorer.pool().clone());
        // Before any job is taken: it may name one.
        shelf.look(&Default::default()).await?;
        let closing = CancellationToken::new();
        tokio::spawn(shelf.clone().keep_up(closing.clone()));
        let routed = kinds.start(&JobContext { scorer: scorer.clone(), shelf }, store, &settings.store);
        Ok(Self { routed, closing })
    }

    /// Takes no more jobs, and waits until those that run here have stopped.
    pub async fn shutdown(&self) {
        self.closing.cancel();
        self.routed.shutdown().await;
    }
}
