//! Every setting: its key, type, default and rule. What a rule cannot see of one value alone is in [`super::references`].

use super::choices::{LoadPolicy, LogFormat};
use super::served::ServedSettings;
use super::store_url::StoreUrl;
use super::{DeviceChoice, Dtype};
use super::{rules, values};
use bytesize::ByteSize;
use garde::Validate;
use serde::{Deserialize, Deserializer};
use smart_default::SmartDefault;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// The id of the embedded model that is served where no model is configured.
pub const DEMO: &str = "demo";

/// The id of the embedded model that is the reference of [`DEMO`].
pub const DEMO_REFERENCE: &str = "demo-reference";

/// All settings, checked.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct Settings {
    #[garde(dive)]
    pub server: ServerSettings,
    #[garde(dive)]
    pub engine: EngineSettings,
    #[garde(dive)]
    pub limits: LimitSettings,
    /// `[[models]]`, in the order of the configuration; empty where the embedded models are to be served.
    #[garde(dive)]
    pub models: Vec<ModelSettings>,
    /// `[[token_counts]]`, in the order of the configuration.
    #[garde(dive)]
    pub token_counts: Vec<TokenCountsSettings>,
    #[garde(dive)]
    pub store: StoreSettings,
    #[garde(dive)]
    pub auth: AuthSettings,
    #[garde(dive)]
    pub log: LogSettings,
    /// Adapters that flags name, each with the id of its model.
    #[serde(skip)]
    pub named_adapters: Vec<(String, AdapterSettings)>,
}

/// How the service listens.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ServerSettings {
    /// The name or address to listen on; an IPv6 address without brackets.
    #[default = "127.0.0.1"]
    #[garde(custom(rules::host))]
    pub host: String,
    /// The port to listen on; 0 lets the operating system choose.
    #[default = 8080]
    pub port: u16,
    /// The largest request body.
    #[default(ByteSize::mib(32))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::b(1))))]
    pub body_limit: ByteSize,
    /// How long a request may take.
    #[default(Duration::from_secs(60))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub request_timeout: Duration,
    /// How long requests are served after SIGTERM, while the service says that it is not ready.
    #[default(Duration::from_secs(5))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::delay))]
    pub drain_delay: Duration,
    /// How long the head of a request may take to arrive, and how long a connection may be idle.
    #[default(Duration::from_secs(15))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub header_timeout: Duration,
    /// How long a client may take none of an answer before its connection is closed.
    #[default(Duration::from_secs(30))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub write_timeout: Duration,
    /// Connections at once; none for four fifths of the files that the process may open.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub connections: Option<usize>,
    /// What the bodies that are being read may take together; none for eight times the largest.
    #[serde(deserialize_with = "values::size_or_auto")]
    #[garde(inner(custom(rules::at_least(ByteSize::b(1)))))]
    pub body_memory: Option<ByteSize>,
    /// Whether another host than loopback is served without keys.
    pub insecure_no_auth: bool,
    /// The address on which `/metrics` is served instead of beside the other routes.
    pub metrics: Option<SocketAddr>,
    /// Names by which clients know the service, where it asks for no key.
    #[garde(inner(custom(rules::host)))]
    pub hosts: Vec<String>,
    /// Origins whose pages may use the service.
    #[garde(inner(custom(rules::origin)))]
    pub cors: Vec<String>,
    /// The certificate and key of TLS; none for plain HTTP.
    #[garde(dive)]
    pub tls: Option<TlsSettings>,
}

/// How connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct TlsSettings {
    /// The chain of certificates in PEM, that of the service first; required.
    #[serde(deserialize_with = "values::path")]
    #[garde(custom(rules::path))]
    pub certificate: PathBuf,
    /// The private key of the first certificate in PEM; required.
    #[serde(deserialize_with = "values::path")]
    #[garde(custom(rules::path))]
    pub key: PathBuf,
}

/// Who may use the service.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct AuthSettings {
    /// The file of keys, as `pdr-audit key` writes it; none where no key is needed.
    #[serde(deserialize_with = "values::optional_path")]
    pub keys: Option<PathBuf>,
    /// The file to which each request is written; none for no record.
    #[serde(deserialize_with = "values::optional_path")]
    pub record: Option<PathBuf>,
    /// Whether clients find in the caches what others have scored.
    pub share_cache: bool,
}

/// How models run.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct EngineSettings {
    /// Where they run.
    #[default(DeviceChoice::Auto)]
    pub device: DeviceChoice,
    /// What they compute in.
    #[default(Dtype::Auto)]
    #[serde(deserialize_with = "values::name")]
    pub dtype: Dtype,
    /// Threads that compute; 0 for as many as the machine has. More than 1,024 would be a mistake.
    #[garde(custom(rules::within(0..=1_024)))]
    pub threads: usize,
    /// The token budget of a batch; none for that of the device.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub max_batch_tokens: Option<usize>,
    /// How many tokens may be admitted and not yet answered; none for a number that suits the device.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub max_queue_tokens: Option<usize>,
    /// The size of the cache of token statistics in memory; 0 turns it off.
    #[default(ByteSize::mib(256))]
    #[serde(deserialize_with = "values::size")]
    pub cache: ByteSize,
    /// The directory that keeps token statistics on disk; none for none. A relative path from the file counts from the
    /// file's directory.
    #[serde(deserialize_with = "values::optional_path")]
    pub disk_cache: Option<PathBuf>,
    /// What that directory may hold. Less than 64 MiB would not keep long texts, of which one may take a 64th of it: 32,000
    /// tokens.
    #[default(ByteSize::gib(4))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::mib(64))))]
    pub disk_cache_limit: ByteSize,
    /// What the models may take of each device; none for a part of what the device has.
    #[serde(deserialize_with = "values::size_or_auto")]
    #[garde(inner(custom(rules::at_least(ByteSize::b(1)))))]
    pub memory: Option<ByteSize>,
    /// How long a forward pass may take before the process counts as hung.
    #[default(Duration::from_secs(600))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub forward_timeout: Duration,
    /// The model of requests that name none; see [`Settings::default_model`].
    pub default_model: Option<String>,
}

/// What one request may ask for.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// The most texts in a request.
    #[default = 10_000]
    #[garde(custom(rules::at_least(1)))]
    pub inputs: usize,
    /// The longest text, in bytes of UTF-8.
    #[default(ByteSize::mib(1))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::b(1))))]
    pub text: ByteSize,
    /// The largest dataset, in bytes as uploaded and decompressed.
    #[default(ByteSize::gib(4))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::b(1))))]
    pub dataset: ByteSize,
}

/// A model to serve.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct ModelSettings {
    /// The id by which requests name it; required.
    #[garde(custom(rules::id))]
    pub id: String,
    /// Where its files come from; required.
    #[garde(custom(|source: &ModelSource, context: &()| rules::path(&source.path, context)))]
    pub source: ModelSource,
    /// The branch, tag or commit of a repository on the Hub.
    #[garde(inner(custom(rules::revision)))]
    pub revision: Option<String>,
    /// Where another process runs it, which knows it by `source`; none where it runs here.
    #[garde(dive)]
    pub served: Option<ServedSettings>,
    /// Where the files of its tokenizer come from, if it is served elsewhere.
    pub tokenizer: Option<ModelSource>,
    /// Where it runs: on one device, or on several that share its queue; [`DeviceChoice::Auto`]: on the engine's device.
    #[default(vec![DeviceChoice::Auto])]
    #[serde(deserialize_with = "values::devices")]
    #[garde(custom(rules::devices))]
    pub device: Vec<DeviceChoice>,
    /// What it computes in; [`Dtype::Auto`]: in what the engine is set to.
    #[default(Dtype::Auto)]
    #[serde(deserialize_with = "values::name")]
    pub dtype: Dtype,
    /// The id of the model that it is compared with where a request names no other.
    pub reference: Option<String>,
    /// When it is loaded.
    #[default(LoadPolicy::Eager)]
    #[serde(deserialize_with = "values::name")]
    pub load: LoadPolicy,
    /// Whether it stays once it is loaded, where a lazy one makes room for others.
    pub pinned: bool,
    /// LoRA adapters of it.
    #[garde(dive)]
    pub adapters: Vec<AdapterSettings>,
}

/// A LoRA adapter of a model, which requests name `<model>:<adapter>`.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct AdapterSettings {
    /// Its name among the adapters of the model; required.
    #[garde(custom(rules::id))]
    pub name: String,
    /// The directory that PEFT saved it to; required.
    #[serde(deserialize_with = "values::path")]
    #[garde(custom(|source: &PathBuf, context: &()| rules::path(source, context)))]
    pub source: PathBuf,
}

/// Where a model's files come from: a directory as transformers saves it or, where there is no such directory, a
/// repository on the Hugging Face Hub.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSource {
    /// As it was written.
    pub text: String,
    /// As a path; a relative one from the file counts from the file's directory.
    pub path: PathBuf,
}

impl<'de> Deserialize<'de> for ModelSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = values::relative_path(deserializer)?;
        Ok(Self { text: path.original().to_string_lossy().into_owned(), path: path.relative() })
    }
}

/// Token counts of a reference corpus, as `pdr-audit count-tokens` writes them.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct TokenCountsSettings {
    /// The id by which requests name them; required.
    #[garde(custom(rules::id))]
    pub id: String,
    /// The file; a relative path from the configuration file counts from that file's directory. Required.
    #[serde(deserialize_with = "values::path")]
    #[garde(custom(rules::path))]
    pub file: PathBuf,
}

/// Where datasets and audits are kept.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct StoreSettings {
    /// The database; none for memory, which ends with the process.
    pub url: Option<StoreUrl>,
    /// What it may take of the memory where it has no database.
    #[default(ByteSize::gib(1))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::mib(16))))]
    pub memory: ByteSize,
    /// How long a finished audit is kept; none for as long as nobody deletes it.
    #[serde(deserialize_with = "values::optional_duration")]
    #[garde(inner(custom(rules::retention)))]
    pub retention: Option<Duration>,
    /// How long an audit belongs to a process that is not heard from; after that another process runs it.
    #[default(Duration::from_secs(30))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::lease))]
    pub lease: Duration,
}

/// What is logged.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct LogSettings {
    /// How lines are written.
    #[default(LogFormat::Text)]
    #[serde(deserialize_with = "values::name")]
    pub format: LogFormat,
    /// What is logged, in the syntax of tracing-subscriber's `EnvFilter`; the variable `RUST_LOG` wins over it.
    #[default = "info"]
    #[garde(custom(rules::log_filter))]
    pub level: String,
}

impl ServerSettings {
    /// Whether only programs of this machine reach the service.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let address = self.host.parse::<IpAddr>();
        address.map_or_else(|_| self.host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback())
    }
}

impl StoreSettings {
    /// The directory of token statistics that goes with a store in a file: an audit that is interrupted finds there what it has
    /// scored.
    #[must_use]
    pub fn statistics(&self) -> Option<PathBuf> {
        let Some(StoreUrl::Sqlite(path)) = &self.url else { return None };
        let mut name = path.file_name()?.to_owned();
        name.push(".statistics");
        Some(path.with_file_name(name))
    }
}

impl Settings {
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
