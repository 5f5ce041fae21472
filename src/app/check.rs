//! Faults that would keep the service from starting or serving its models, found without serving.

use super::{hub, listen, listen_for_metrics, refuse_strangers, signing_key};
use crate::access::Keyring;
use crate::config::{AdapterSettings, DEMO, DEMO_REFERENCE, ModelSettings, Settings};
use crate::pool::Origin;
use crate::scorer::load_token_counts;
use crate::server::Tls;
use crate::store::Store;
use anyhow::{Context, Result, bail};
use lm::hub::DownloadProgress;
use lm::models::files::ModelFiles;
use std::path::Path;

/// The names that weights have, of which a model has one.
const WEIGHTS: [&str; 4] =
    ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"];

/// A part of the service, and what is known of it or why it fails.
pub struct CheckedPart {
    pub name: String,
    pub outcome: Result<String>,
}

/// Checks what the service needs at its start, one part after another. It binds its addresses for a moment, downloads nothing,
/// loads no weights, and changes nothing of the store.
pub async fn check(settings: &Settings) -> Vec<CheckedPart> {
    let part = |name: &str, outcome| CheckedPart { name: name.to_owned(), outcome };
    let mut parts = vec![part("address", address(settings).await)];
    if settings.server.metrics.is_some() {
        parts.push(part("metrics", metrics(settings).await));
    }
    parts.push(part("keys", keys(settings)));
    parts.push(part("reports", reports(settings)));
    if let Some(tls) = settings.server.tls.clone() {
        let certificate = tls.certificate.display().to_string();
        parts.push(part("TLS", Tls::open(tls).context("`server.tls`").map(|_| certificate)));
    }
    parts.push(part("store", store(settings).await));
    if !settings.token_counts.is_empty() {
        let ids: Vec<&str> = settings.token_counts.iter().map(|counts| counts.id.as_str()).collect();
        parts.push(part(
            "token counts",
            load_token_counts(&settings.token_counts).map(|_| ids.join(", ")).map_err(Into::into),
        ));
    }
    parts.extend(models(settings));
    parts
}

async fn address(settings: &Settings) -> Result<String> {
    refuse_strangers(settings)?;
    let scheme = if settings.server.tls.is_some() { "https" } else { "http" };
    Ok(format!("{scheme}://{}", listen(settings, None).await?.address()?))
}

async fn metrics(settings: &Settings) -> Result<String> {
    match listen_for_metrics(settings).await? {
        Some(listener) => Ok(format!("http://{}/metrics", listener.address()?)),
        None => Ok("beside the other routes".to_owned()),
    }
}

fn keys(settings: &Settings) -> Result<String> {
    let Some(file) = &settings.auth.keys else { return Ok("none: clients need no key".to_owned()) };
    Keyring::open(file).context("`auth.keys`")?;
    Ok(file.display().to_string())
}

fn reports(settings: &Settings) -> Result<String> {
    let key = signing_key(settings)?;
    Ok(key
        .map_or("reports are not signed".to_owned(), |key| format!("reports are signed by key {}", key.public().id())))
}

async fn store(settings: &Settings) -> Result<String> {
    let Some(url) = &settings.store.url else { return Ok("in memory, which ends with the process".to_owned()) };
    Store::check(url).await.context("`store.url`")?;
    Ok(format!("{url:?}"))
}

/// A part for each model, with where its files are.
fn models(settings: &Settings) -> Vec<CheckedPart> {
    let default = settings.default_model();
    let note = |id: &str| if default == Some(id) { " (default)" } else { "" };
    let part = |id: &str, outcome: Result<String>| CheckedPart {
        name: format!("model {id}"),
        outcome: outcome.map(|source| format!("{source}{}", note(id))),
    };
    if settings.models.is_empty() {
        return [DEMO, DEMO_REFERENCE].map(|id| part(id, Ok("part of the program".to_owned()))).into();
    }
    settings.models.iter().map(|model| part(&model.id, model_files(settings, model))).collect()
}

/// Where the files of a model are; those of a directory must be there.
fn model_files(settings: &Settings, model: &ModelSettings) -> Result<String> {
    for AdapterSettings { name, source } in settings.adapters_of(&model.id) {
        let context = || format!("adapter `{name}`");
        ModelFiles::Directory(source.clone()).open("adapter_config.json").map(|_| ()).with_context(context)?;
    }
    let origin = Origin::configured(model)?;
    if let Some(repository) = origin.repository() {
        return Ok(format!("{repository} of the Hub"));
    }
    if origin.is_served() {
        return Ok(format!("served by {}", model.source.text));
    }
    let (hub, progress) = (hub(), DownloadProgress::default());
    origin.locate(hub.as_ref(), &progress)?.files.open("config.json")?;
    origin.tokenizer(hub.as_ref(), &progress)?;
    if !model.source.is_gguf() && !WEIGHTS.iter().any(|name| model.source.path.join(name).is_file()) {
        bail!("{} has no weights: none of {}", display(&model.source.path), WEIGHTS.join(", "));
    }
    Ok(display(&model.source.path))
}

fn display(path: &Path) -> String {
    path.display().to_string()
}
