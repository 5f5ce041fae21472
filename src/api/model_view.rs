//! JSON representation of models and devices.

use crate::engine::DeviceStatus;
use crate::pool::{AdapterStatus, Model, ModelInfo, ModelState, ModelStatus, Origin, adapted_id};
use crate::served::BackendInfo;
use lm::hub::DownloadProgress;
use lm::models::layers::LayerPlacement;
use lm::models::precision::Rounding;
use serde::Serialize;
use utoipa::ToSchema;

/// All models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// In the order of the configuration.
    pub models: Vec<ModelEntry>,
    /// The devices that they share.
    pub devices: Vec<DeviceEntry>,
}

/// One device.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeviceEntry {
    #[schema(examples("cpu"))]
    name: String,
    /// Maximum bytes of the models on it: weights and the activations of one batch.
    memory_budget_bytes: u64,
    /// The weights on it.
    memory_used_bytes: u64,
    /// Why it does not answer, where it does not: a server of a model that is served elsewhere. For keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unavailable: Option<String>,
}

/// One model. What its files say is null until they are open.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelEntry {
    /// Name in requests.
    id: String,
    state: StateName,
    /// Why the last attempt to open or load it failed, where it did; for keys with the scope `admin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Progress of its download, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    download: Option<Download>,
    /// True if it serves requests that name no model.
    default: bool,
    /// When it is loaded.
    load: LoadName,
    /// True if it stays in memory when others need room: eager models and those that the configuration pins.
    pinned: bool,
    /// The directory or repository that its files come from, or the name that it is served under elsewhere; null where they are
    /// part of the program.
    #[schema(examples("EleutherAI/pythia-160m"))]
    source: Option<String>,
    /// The branch, tag or commit that the configuration asks for, of the tokenizer where the model is served elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    /// The devices that hold it now.
    resident: Vec<String>,
    /// The default reference model, where one is configured.
    reference: Option<String>,
    /// The model that it was tuned from, where one is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<String>,
    /// Its LoRA adapters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    adapters: Vec<AdapterEntry>,
    #[serde(flatten)]
    opened: OpenedEntry,
}

/// A LoRA adapter of a model. What its files say is absent until they are open.
#[derive(Debug, Serialize, ToSchema)]
pub struct AdapterEntry {
    /// Id of the model under it in requests.
    #[schema(examples("demo:tuned"))]
    id: String,
    /// Its name among the adapters of the model.
    #[schema(examples("tuned"))]
    name: String,
    /// `ready` once it is open; it runs wherever the model does.
    state: StateName,
    /// Rank of its changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    rank: Option<usize>,
    /// Its changes are scaled by `alpha / rank`, or by `alpha / sqrt(rank)` where `rank_stabilized` is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    alpha: Option<f64>,
    /// True if it is rank-stabilized (rsLoRA).
    #[serde(skip_serializing_if = "Option::is_none")]
    rank_stabilized: Option<bool>,
    /// The modules that it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    target_modules: Option<Vec<String>>,
    /// SHA-256 over its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Bytes of its matrices.
    #[serde(skip_serializing_if = "Option::is_none")]
    weight_bytes: Option<u64>,
}

impl AdapterEntry {
    fn new(base: &str, status: &AdapterStatus) -> Self {
        let adapter = status.adapter.as_ref();
        let name = status.declaration.name.clone();
        Self {
            id: adapted_id(base, &name),
            name,
            state: if adapter.is_some() { StateName::Ready } else { StateName::Unloaded },
            rank: adapter.map(|adapter| adapter.config.rank),
            alpha: adapter.map(|adapter| adapter.config.alpha),
            rank_stabilized: adapter.map(|adapter| adapter.config.rank_stabilized),
            target_modules: adapter.map(|adapter| adapter.config.target_modules.clone()),
            digest: adapter.map(|adapter| adapter.digest.clone()),
            weight_bytes: adapter.map(|adapter| adapter.bytes),
        }
    }
}

/// Properties of a model, from its files.
#[derive(Debug, Default, Serialize, ToSchema)]
pub struct OpenedEntry {
    /// `causal` models score texts; `masked` ones serve to make neighbours.
    #[schema(examples("causal"))]
    kind: Option<&'static str>,
    /// Value of `model_type` in its configuration.
    #[schema(examples("gpt_neox"))]
    architecture: Option<&'static str>,
    /// Maximum number of tokens of a text; null if there is no limit.
    context: Option<usize>,
    /// Outputs of its head.
    vocab_size: Option<usize>,
    /// The type it computes in.
    #[schema(examples("f32"))]
    dtype: Option<String>,
    /// Possible deviation of its numbers from those in f32, by checkpoints that were tested on the CPU; absent if they are f32's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounding: Option<Rounding>,
    /// What its weights are quantised to, as in `Q4_K_M`; absent if they are not quantised.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("Q4_K_M"))]
    quantization: Option<String>,
    /// Device that runs it; several devices are separated by commas.
    #[schema(examples("cpu"))]
    device: Option<String>,
    /// SHA-256 over configuration and weights.
    digest: Option<String>,
    /// SHA-256 of the tokenizer.
    tokenizer_digest: Option<String>,
    /// Where the layers are while it runs: in memory, or read from disk by every forward pass; absent if it is served elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    layers: Option<LayerPlacement>,
    /// Bytes of the weights that are in memory once it is loaded.
    weight_bytes: Option<u64>,
    /// The commit of a model from the Hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    /// Server that runs it, if it is served elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    backend: Option<BackendInfo>,
}

/// Progress of a download.
#[derive(Debug, Serialize, ToSchema)]
pub struct Download {
    /// Bytes that are there.
    bytes: u64,
    /// Bytes of all files; 0 until they are known.
    total_bytes: u64,
}

/// State of a model.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateName {
    /// Not in memory; the first request loads it.
    Unloaded,
    /// Its files are being fetched, read or loaded, or it waits for its turn.
    Loading,
    /// In memory.
    Ready,
    /// Being unloaded: what is queued for it is finished, new requests are refused.
    Draining,
    /// The last attempt to open or load it failed; a later request tries again.
    Failed,
}

/// When a model is loaded.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LoadName {
    /// At start.
    Eager,
    /// By the first request.
    Lazy,
}

impl From<&ModelState> for StateName {
    fn from(state: &ModelState) -> Self {
        match state {
            ModelState::Closed | ModelState::Opened => Self::Unloaded,
            ModelState::Fetching | ModelState::Loading => Self::Loading,
            ModelState::Ready => Self::Ready,
            ModelState::Draining => Self::Draining,
            ModelState::Failed(_) => Self::Failed,
        }
    }
}

impl From<&Model> for OpenedEntry {
    fn from(model: &Model) -> Self {
        let ModelInfo { digest, tokenizer_digest, dtype, rounding, quantization, device, commit, backend, .. } =
            model.info.clone();
        Self {
            kind: Some(if model.masked { "masked" } else { "causal" }),
            architecture: model.architecture,
            context: model.context,
            vocab_size: Some(model.vocab_size),
            dtype: Some(dtype),
            rounding,
            quantization,
            device: Some(device),
            digest: Some(digest),
            tokenizer_digest: Some(tokenizer_digest),
            layers: model.layers,
            weight_bytes: Some(model.weight_bytes),
            commit,
            backend,
        }
    }
}

impl From<&DownloadProgress> for Download {
    fn from(progress: &DownloadProgress) -> Self {
        Self { bytes: progress.done(), total_bytes: progress.total() }
    }
}

/// Stands in for a reason that is for administrators.
const REASON_IN_LOG: &str = "the service's log says why";

/// Returns the reason, or a reference to the log for clients that are not told.
fn reason(reason: &str, is_told: bool) -> String {
    if is_told { reason } else { REASON_IN_LOG }.to_owned()
}

impl DeviceEntry {
    pub fn new(device: &DeviceStatus, tells_reasons: bool) -> Self {
        let (memory_budget_bytes, memory_used_bytes) = (device.memory_budget, device.memory_used);
        let (name, unavailable) =
            (device.name.clone(), device.unavailable.as_ref().map(|silent| reason(&silent.reason, tells_reasons)));
        Self { name, memory_budget_bytes, memory_used_bytes, unavailable }
    }
}

impl ModelEntry {
    pub fn new(status: &ModelStatus, devices: &[DeviceStatus], default: bool, tells_reasons: bool) -> Self {
        let declaration = &status.declaration;
        let (source, revision) = match &declaration.origin {
            Origin::Configured { source, revision, .. } => (Some(source.text.clone()), revision.clone()),
            Origin::Served(served) => (Some(served.source.name.clone()), served.revision.clone()),
            Origin::Files(_) => (None, None),
        };
        let name = |&device: &usize| devices.get(device).map(|device| device.name.clone());
        let download = status.progress.as_deref().filter(|progress| progress.total() > 0);
        Self {
            id: declaration.id.clone(),
            state: (&status.state).into(),
            reason: match &status.state {
                ModelState::Failed(failure) => Some(reason(failure, tells_reasons)),
                _ => None,
            },
            download: download.map(Download::from),
            default,
            load: if declaration.eager { LoadName::Eager } else { LoadName::Lazy },
            pinned: declaration.stays(),
            source,
            revision,
            resident: status.resident.iter().filter_map(name).collect(),
            reference: declaration.reference.clone(),
            base: declaration.base.clone(),
            adapters: status.adapters.iter().map(|adapter| AdapterEntry::new(&declaration.id, adapter)).collect(),
            opened: status.model.as_deref().map(OpenedEntry::from).unwrap_or_default(),
        }
    }
}
