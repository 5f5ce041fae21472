//! Typed settings: compiled-in defaults, then the TOML file, then the environment, then flags; the later wins.
//!
//! Every key of the file can come from the environment as `PDR_AUDIT__SECTION__KEY`; a value there is TOML where it parses
//! as TOML (numbers, arrays, inline tables) and plain text where it does not.
//!
//! Invariants:
//!
//! - a [`Settings`] that exists has been checked: nothing later asks again whether a limit is positive or a model exists;
//! - nothing is ignored: an unknown key, at any level and from any source, is a fault like a value out of range;
//! - all faults are reported at once, each with its key and where it came from.

mod choices;
mod error;
mod reader;
mod sections;
mod size;
mod sources;
#[cfg(test)]
mod tests;
mod validate;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub use choices::{Device, Dtype, Load, LogFormat, Simd};
pub use error::{ConfigError, Fault};
pub use size::ByteSize;

use reader::Reader;
use sources::Sources;

/// The id of the embedded model that is served where no model is configured.
pub const DEMO: &str = "demo";

/// The id of the embedded model that is the reference of [`DEMO`].
pub const DEMO_REFERENCE: &str = "demo-reference";

/// All settings, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// `[server]`
    pub server: Server,
    /// `[engine]`
    pub engine: Engine,
    /// `[limits]`
    pub limits: Limits,
    /// `[[models]]`, in the order of the configuration; empty where the embedded models are to be served.
    pub models: Vec<Model>,
    /// `[[token_counts]]`, in the order of the configuration.
    pub token_counts: Vec<TokenCounts>,
    /// `[log]`
    pub log: Log,
}

/// How the service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// The name or address to listen on; an IPv6 address without brackets.
    pub host: String,
    /// The port to listen on; 0 lets the operating system choose.
    pub port: u16,
    /// The largest request body.
    pub body_limit: ByteSize,
    /// How long a request may take.
    pub request_timeout: Duration,
}

impl Default for Server {
    fn default() -> Self {
        Self {
            host: "127.0.0.1".to_owned(),
            port: 8080,
            body_limit: ByteSize::mebibytes(32),
            request_timeout: Duration::from_secs(60),
        }
    }
}

/// How models run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Where they run.
    pub device: Device,
    /// What they compute in.
    pub dtype: Dtype,
    /// What the kernels of the CPU run on.
    pub simd: Simd,
    /// Threads that compute; 0 for as many as the machine has.
    pub threads: usize,
    /// The token budget of a batch; none for one that suits the model and the device.
    pub max_batch_tokens: Option<usize>,
    /// Whether that one is measured when a model is loaded for the first time.
    pub calibrate: bool,
    /// How many tokens may be admitted and not yet answered; none for a number that suits the device.
    pub max_queue_tokens: Option<usize>,
    /// The size of the cache of token statistics in memory; 0 turns it off.
    pub cache: ByteSize,
    /// The directory that keeps token statistics on disk; none for none. A relative path from the file counts from the
    /// file's directory.
    pub disk_cache: Option<PathBuf>,
    /// What that directory may hold.
    pub disk_cache_limit: ByteSize,
    /// What the models may take of each device; none for a part of what the device has.
    pub memory: Option<ByteSize>,
    /// The model of requests that name none; see [`Settings::default_model`].
    pub default_model: Option<String>,
}

impl Default for Engine {
    fn default() -> Self {
        Self {
            device: Device::Auto,
            dtype: Dtype::Auto,
            simd: Simd::Auto,
            threads: 0,
            max_batch_tokens: None,
            calibrate: true,
            max_queue_tokens: None,
            cache: ByteSize::mebibytes(256),
            disk_cache: None,
            disk_cache_limit: ByteSize::mebibytes(4_096),
            memory: None,
            default_model: None,
        }
    }
}

/// What one request may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The most texts in a request.
    pub inputs: usize,
    /// The longest text, in bytes of UTF-8.
    pub text: ByteSize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { inputs: 10_000, text: ByteSize::mebibytes(1) }
    }
}

/// A model to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The id by which requests name it.
    pub id: String,
    /// Where its files come from.
    pub source: Source,
    /// The branch, tag or commit of a repository on the Hub.
    pub revision: Option<String>,
    /// Where it runs: on one device, or on several that share its queue; [`Device::Auto`]: on the engine's device.
    pub devices: Vec<Device>,
    /// What it computes in; [`Dtype::Auto`]: in what the engine is set to.
    pub dtype: Dtype,
    /// The id of the model that it is compared with where a request names no other.
    pub reference: Option<String>,
    /// When it is loaded.
    pub load: Load,
    /// Whether it stays once it is loaded, where a lazy one makes room for others.
    pub pinned: bool,
}

/// Where a model's files come from: a directory as transformers saves it or, where there is no such directory, a
/// repository on the Hugging Face Hub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Source {
    /// As it was written.
    pub text: String,
    /// As a path; a relative one from the file counts from the file's directory.
    pub path: PathBuf,
}

/// Token counts of a reference corpus, as `pdr-audit count-tokens` writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// The id by which requests name them.
    pub id: String,
    /// The file; a relative path from the configuration file counts from that file's directory.
    pub file: PathBuf,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    /// How lines are written.
    pub format: LogFormat,
    /// What is logged, in the syntax of tracing-subscriber's `EnvFilter`; the variable `RUST_LOG` wins over it.
    pub level: String,
}

impl Default for Log {
    fn default() -> Self {
        Self { format: LogFormat::Text, level: "info".to_owned() }
    }
}

/// What the command line sets; it wins over all other sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--host`
    pub host: Option<String>,
    /// `--port`
    pub port: Option<u16>,
}

impl Settings {
    /// The settings of this process: of `file`, where one is given, of its environment and of `overrides`.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or is not TOML, or where any value is at fault; then all faults are reported.
    pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Self, ConfigError> {
        let text = match file {
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?,
            ),
            None => None,
        };
        Self::from_sources(file.zip(text.as_deref()), std::env::vars_os(), overrides)
    }

    /// As [`Settings::load`], but a function of its arguments alone: the file's path with its text, and the variables of
    /// the environment, of which those without the prefix `PDR_AUDIT__` are passed over.
    ///
    /// # Errors
    ///
    /// As [`Settings::load`].
    pub fn from_sources(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let sources = Sources::merge(file, environment, overrides)?;
        let mut reader = Reader::new(&sources);
        let settings = sections::read(&mut reader);
        validate::check(&settings, &mut reader);
        let faults = reader.finish();
        if faults.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid(faults)) }
    }

    /// The model of requests that name none: the configured default, or the only model, or the embedded one. None where
    /// several models are configured and none of them is the default.
    #[must_use]
    pub fn default_model(&self) -> Option<&str> {
        match (&self.engine.default_model, self.models.as_slice()) {
            (Some(id), _) => Some(id),
            (None, []) => Some(DEMO),
            (None, [only]) => Some(&only.id),
            (None, _) => None,
        }
    }
}
