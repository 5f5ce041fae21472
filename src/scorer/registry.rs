//! The models that are configured: what is known of each before a weight is loaded.

use crate::engine::ModelSource;
use crate::models::ModelError;
use crate::models::checkpoint::Checkpoint;
use crate::models::files::{ModelFiles, digest};
use crate::tokenizer::Tokenizer;
use candle_core::{DType, Device};
use std::sync::Arc;

/// A configured model.
pub struct Model {
    pub id: String,
    /// SHA-256 over configuration and weights.
    pub digest: String,
    pub tokenizer_digest: String,
    pub tokenizer: Tokenizer,
    /// The most tokens of a text.
    pub context: usize,
    /// Outputs of the head.
    pub vocab_size: usize,
    /// Value of `model_type` in the configuration.
    pub architecture: &'static str,
    /// The type it computes in.
    pub dtype: &'static str,
    /// Where it runs: `cpu`, `cuda:0` ...
    pub device: String,
    /// Bytes of the weights once loaded.
    pub weight_bytes: u64,
    /// The default reference model.
    pub reference: Option<String>,
}

/// All configured models.
pub struct Registry {
    models: Vec<Arc<Model>>,
    default: Option<Arc<Model>>,
}

/// A model that cannot be served, or a request that names none that is.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No model has this id.
    #[error("model `{id}` is not configured; configured: {known}")]
    Unknown { id: String, known: String },
    /// Several models, no default, and the request names none.
    #[error("the request names no model and there is no default; configured: {known}")]
    NoDefault { known: String },
    /// The files of a model cannot be used.
    #[error("model `{id}`: {error}")]
    Unusable { id: String, error: ModelError },
}

impl Registry {
    /// The models in the order of the configuration. With one model that one is the default.
    pub fn new(models: Vec<Arc<Model>>, default: Option<&str>) -> Self {
        let named = default.and_then(|id| models.iter().find(|m| m.id == id));
        let only = models.first().filter(|_| models.len() == 1);
        let default = named.or(only).cloned();
        Self { models, default }
    }

    /// Every model.
    pub fn all(&self) -> &[Arc<Model>] {
        &self.models
    }

    /// The model a request names, or the default.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] or [`RegistryError::NoDefault`].
    pub fn find(&self, id: Option<&str>) -> Result<Arc<Model>, RegistryError> {
        let known = || self.models.iter().map(|m| m.id.as_str()).collect::<Vec<_>>().join(", ");
        match id {
            Some(id) => {
                let found = self.models.iter().find(|m| m.id == id).cloned();
                found.ok_or_else(|| RegistryError::Unknown { id: id.to_owned(), known: known() })
            }
            None => self.default.clone().ok_or_else(|| RegistryError::NoDefault { known: known() }),
        }
    }

    /// The id of the default model.
    pub fn default_id(&self) -> Option<&str> {
        self.default.as_ref().map(|m| m.id.as_str())
    }
}

impl Model {
    /// Opens a model's files and prepares its loading on a device.
    ///
    /// # Errors
    /// [`RegistryError::Unusable`] naming the file, key or tensor at fault.
    pub fn open(
        id: &str,
        files: ModelFiles,
        reference: Option<String>,
        eager: bool,
        device: &Device,
    ) -> Result<(Arc<Self>, ModelSource), RegistryError> {
        let unusable = |error: ModelError| RegistryError::Unusable { id: id.to_owned(), error };
        let checkpoint = Checkpoint::open(&files).map_err(unusable)?;
        let json = files.open("tokenizer.json").map_err(unusable)?;
        let tokenizer = Tokenizer::from_json(&json).map_err(|e| unusable(files.fault("tokenizer.json", e)))?;
        let (bound, vocab) = (tokenizer.id_bound(), checkpoint.vocab_size());
        if bound > vocab {
            let reason = format!("gives ids up to {}, but the model has {vocab} outputs", bound - 1);
            return Err(unusable(files.fault("tokenizer.json", reason)));
        }
        let model = Self {
            id: id.to_owned(),
            digest: checkpoint.digest(),
            tokenizer_digest: digest(&json),
            tokenizer,
            context: checkpoint.context().unwrap_or(usize::MAX),
            vocab_size: vocab,
            architecture: checkpoint.model_type(),
            dtype: "f32",
            device: device_name(device),
            weight_bytes: checkpoint.weight_bytes(DType::F32),
            reference,
        };
        let source = ModelSource {
            id: model.id.clone(),
            eager,
            context: Some(model.context),
            identity: format!("{} {} {}", model.digest, model.dtype, model.device),
            load: loader(files, device.clone()),
        };
        Ok((Arc::new(model), source))
    }
}

/// Opens the files anew at every load: an unloaded model holds no map of its weights.
fn loader(files: ModelFiles, device: Device) -> crate::engine::Load {
    Box::new(move || Checkpoint::open(&files)?.load(DType::F32, &device))
}

fn device_name(device: &Device) -> String {
    match device.location() {
        candle_core::DeviceLocation::Cpu => "cpu".into(),
        candle_core::DeviceLocation::Cuda { gpu_id } => format!("cuda:{gpu_id}"),
        candle_core::DeviceLocation::Metal { gpu_id } => format!("metal:{gpu_id}"),
    }
}
