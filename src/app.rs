//! Wiring: settings to a running service, and its end in order.

use crate::api;
use crate::config::{self, Load, Settings};
use crate::engine::{Engine, EngineSettings, ModelSource};
use crate::jobs::Audits;
use crate::models::demo::{DEMO, DEMO_REFERENCE};
use crate::models::device;
use crate::models::files::ModelFiles;
use crate::scorer::{Model, Registry, Scorer, Workers};
use crate::telemetry::Metrics;
use anyhow::{Context, Result, bail};
use candle_core::Device;
use std::sync::Arc;
use tokio::net::TcpListener;

/// Token budgets where the settings say `auto`: of a batch, and of the queue.
const CPU_BUDGETS: (usize, usize) = (2_048, 1 << 20);
const GPU_BUDGETS: (usize, usize) = (16_384, 1 << 23);

/// Opens all models and starts the engine; loading goes on behind it.
///
/// # Errors
/// A device, model or thread that cannot be had, by name.
pub fn start_scorer(settings: &Settings) -> Result<Scorer> {
    let device = device::open(&settings.engine.device)?;
    let (models, sources) = open_models(settings, &device)?;
    let (batch, queue) = if device.is_cpu() { CPU_BUDGETS } else { GPU_BUDGETS };
    let engine = EngineSettings {
        threads: settings.engine.threads,
        max_batch_tokens: settings.engine.max_batch_tokens.unwrap_or(batch),
        max_queue_tokens: settings.engine.max_queue_tokens.unwrap_or(queue),
        cache_bytes: settings.engine.cache.as_u64(),
    };
    let engine = Engine::start(sources, engine)?;
    let registry = Registry::new(models, settings.default_model());
    Ok(Scorer::new(engine, Arc::new(registry), Workers::new(settings.engine.threads)?, settings.limits.text.as_u64()))
}

fn open_models(settings: &Settings, device: &Device) -> Result<(Vec<Arc<Model>>, Vec<ModelSource>)> {
    let mut opened = Vec::new();
    if settings.models.is_empty() {
        let reference = Some(config::DEMO_REFERENCE.to_owned());
        opened.push(Model::open(config::DEMO, DEMO, reference, true, device)?);
        opened.push(Model::open(config::DEMO_REFERENCE, DEMO_REFERENCE, None, true, device)?);
    }
    for model in &settings.models {
        if model.device != config::Device::Auto && !device::open(&model.device)?.same_device(device) {
            bail!(
                "models `{}`: `device` is another than that of [engine]; one service uses one device so far",
                model.id
            );
        }
        let (files, eager) = (ModelFiles::Directory(model.source.clone()), model.load == Load::Eager);
        opened.push(Model::open(&model.id, files, model.reference.clone(), eager, device)?);
    }
    Ok(opened.into_iter().unzip())
}

/// Serves until a signal ends it or the device is lost.
///
/// # Errors
/// What keeps the service from starting, or the loss of the device.
pub async fn serve(settings: Settings) -> Result<()> {
    let metrics = Metrics::install()?;
    tokio::spawn({
        let metrics = metrics.clone();
        async move { metrics.keep_tidy().await }
    });
    let address = (settings.server.host.as_str(), settings.server.port);
    // Opened before the port is: a client is refused at once, and not left waiting while digests are taken.
    let scorer = start_scorer(&settings)?;
    let listener =
        TcpListener::bind(address).await.with_context(|| format!("cannot listen on {}:{}", address.0, address.1))?;
    let (engine, audits) = (scorer.engine().clone(), Audits::new(scorer.clone()));
    let state = api::ApiState::new(scorer, audits.clone(), metrics, &settings);
    tracing::info!("listening on http://{}, documentation at /docs", listener.local_addr()?);
    tokio::spawn(report_loading(engine.clone()));

    let lost = engine.clone();
    let ending = shutdown(engine.clone(), audits, settings.server.request_timeout);
    let server = axum::serve(listener, api::router(state)).with_graceful_shutdown(ending);
    tokio::select! {
        ended = async { server.await } => ended.context("the server failed")?,
        why = lost.device_lost() => bail!("the device is lost: {why}"),
        () = impatience(settings.server.request_timeout) => tracing::warn!("requests were still open and are cut off"),
    }
    tokio::task::spawn_blocking(move || engine.shutdown(std::time::Duration::ZERO)).await?;
    tracing::info!("stopped");
    Ok(())
}

async fn report_loading(engine: Engine) {
    match engine.wait_until_loaded().await {
        Ok(()) => tracing::info!("all models are loaded"),
        Err(error) => tracing::error!(%error, "not ready"),
    }
}

/// On a signal: no more work is taken, audits are cancelled, what is queued is finished. Then the server closes.
async fn shutdown(engine: Engine, audits: Audits, grace: std::time::Duration) {
    signal().await;
    tracing::info!("draining; a second signal ends at once");
    tokio::spawn(async {
        signal().await;
        std::process::exit(1);
    });
    // The gate closes at once and the queue is finished beside the open requests that wait for it.
    tokio::task::spawn_blocking(move || engine.shutdown(grace));
    audits.shutdown().await;
}

/// Ends some time after the first signal, whatever is still open.
async fn impatience(grace: std::time::Duration) {
    signal().await;
    tokio::time::sleep(grace).await;
}

/// Waits for SIGINT or SIGTERM.
async fn signal() {
    let interrupt = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! { _ = interrupt => {}, _ = terminate.recv() => {} },
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be caught");
                let _ = interrupt.await;
            }
        }
    }
    #[cfg(not(unix))]
    let _ = interrupt.await;
}
