//! Why the pool refuses something, or could not do it.

use lm::hub::HubError;
use lm::models::ModelError;
use lm::tokenizer::TokenizerError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model `{0}` is not configured")]
pub struct UnknownModel(pub String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    #[error("model `{id}` is not configured; configured: {known}")]
    Unknown { id: String, known: String },
    #[error("the request names no model and there is no default; configured: {known}")]
    NoDefault { known: String },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    #[error("the id `{0}` is taken")]
    Taken(String),
    #[error("model `{id}` cannot be on the devices {devices:?} of {count}")]
    Devices { id: String, devices: Vec<usize>, count: usize },
    #[error(transparent)]
    Ended(#[from] Ended),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdapterError {
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    #[error("model `{base}` has no adapter `{name}`; it has: {known}")]
    Unknown { base: String, name: String, known: String },
    #[error("the name `{0}` is taken")]
    Taken(String),
    #[error("`{0}` is in use")]
    InUse(String),
    #[error("`{id}`: {reason}")]
    Files { id: String, reason: String },
    #[error("opening the adapter's files panicked: {0}")]
    Panicked(String),
}

#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    #[error(
        "source `{0}` is not a directory, nor a repository as in \"EleutherAI/pythia-160m\", nor a file in GGUF, on disk or as in \
         \"hub:OWNER/NAME:FILE.gguf\""
    )]
    NoSource(String),
    #[error("revision `{revision}`: source `{source_text}` is on disk, where there are no revisions")]
    NoRevision { source_text: String, revision: String },
    #[error("served.api_key_env: the environment variable `{0}` is not set, or holds no key")]
    NoKey(String),
    #[error("{named}: {error}")]
    Hub {
        /// The source in words.
        named: String,
        error: HubError,
    },
    #[error("layers: {0}")]
    Layers(String),
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    #[error("opening the model's files panicked: {0}")]
    Panicked(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    #[error("the service shut down")]
    ShuttingDown,
    #[error("the device is lost: {0}")]
    DeviceLost(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The model is being unloaded, or an unload came while it loaded: of the two, the unload wins.
    #[error("the model is being unloaded")]
    Unloading,
    /// Its files could not be opened, or it could not be loaded to at least one of its devices.
    #[error("the model failed to load: {0}")]
    Failed(String),
    #[error(transparent)]
    Ended(#[from] Ended),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnloadError {
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    #[error(transparent)]
    Ended(#[from] Ended),
}
