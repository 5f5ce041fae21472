//! Why the pool refuses something, or could not do it.

use lm::hub::{HubError, RepoId};
use lm::models::ModelError;
use lm::tokenizer::TokenizerError;

/// No model of this id is declared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("model `{0}` is not configured")]
pub struct UnknownModel(pub String);

/// A request that names no model that is there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No model has this id.
    #[error("model `{id}` is not configured; configured: {known}")]
    Unknown {
        /// Id that the request named.
        id: String,
        /// The ids that exist, separated by commas.
        known: String,
    },
    /// There are several models, none is the default, and the request names none.
    #[error("the request names no model and there is no default; configured: {known}")]
    NoDefault {
        /// The ids that exist, separated by commas.
        known: String,
    },
}

/// Why a model cannot be added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddError {
    /// Another model has this id, or has it until it is gone.
    #[error("the id `{0}` is taken")]
    Taken(String),
    /// It names no device, one that does not exist, or one twice.
    #[error("model `{id}` cannot be on the devices {devices:?} of {count}")]
    Devices {
        /// The model's id.
        id: String,
        /// Devices that it names.
        devices: Vec<usize>,
        /// Number of devices.
        count: usize,
    },
    #[error(transparent)]
    Ended(#[from] Ended),
}

/// Why something cannot be done with an adapter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdapterError {
    /// No model of the base's id is declared.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The model has no adapter of this name.
    #[error("model `{base}` has no adapter `{name}`; it has: {known}")]
    Unknown {
        /// The id of the model.
        base: String,
        /// Name in the request.
        name: String,
        /// The names that exist, separated by commas.
        known: String,
    },
    /// The model has another adapter of this name.
    #[error("the name `{0}` is taken")]
    Taken(String),
    /// Some request still runs under it.
    #[error("`{0}` is in use")]
    InUse(String),
    /// Its files are no adapter of its base.
    #[error("`{id}`: {reason}")]
    Files {
        /// The id of the adapted model.
        id: String,
        /// Description of the fault.
        reason: String,
    },
    /// The code that opens adapters panicked.
    #[error("opening the adapter's files panicked: {0}")]
    Panicked(String),
}

/// Why a model's files cannot be opened.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// No model of this id is declared any more.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// The adapter that the id names cannot be opened.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// The source is neither a directory nor the name of a repository.
    #[error("source `{0}` is not a directory, nor a repository as in \"EleutherAI/pythia-160m\"")]
    NoSource(String),
    /// A directory has only one revision.
    #[error("revision `{revision}`: source `{source_text}` is a directory, which has no revisions")]
    NoRevision {
        /// The source as the settings spell it.
        source_text: String,
        /// Revision that they ask for.
        revision: String,
    },
    /// The key that servers elsewhere ask for is not there.
    #[error("served.api_key_env: the environment variable `{0}` is not set, or holds no key")]
    NoKey(String),
    /// The Hub does not give the files.
    #[error("`{repository}` (there is no such directory, so it names a repository): {error}")]
    Hub {
        /// The repository.
        repository: RepoId,
        /// Error of the Hub, or of the way to it.
        error: HubError,
    },
    /// The files are not a model that can be served.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// No file of the tokenizer can be used.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// The code that opens models panicked.
    #[error("opening the model's files panicked: {0}")]
    Panicked(String),
}

/// Why a request gets no lease of a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LeaseError {
    /// No model of this id is declared.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    /// Its files are not open, or were opened anew since the request read them.
    #[error("model `{0}` is not opened, or was opened anew")]
    NotOpened(String),
}

/// The service has stopped taking work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    #[error("the service shut down")]
    ShuttingDown,
    /// A device is lost; only a new process can help.
    #[error("the device is lost: {0}")]
    DeviceLost(String),
}

/// Why a load did not end with the model in memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// No model of this id is declared.
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

/// Why an unload did not end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnloadError {
    /// The adapter is not there, or is in use.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// No model of this id is declared.
    #[error(transparent)]
    UnknownModel(#[from] UnknownModel),
    #[error(transparent)]
    Ended(#[from] Ended),
}
