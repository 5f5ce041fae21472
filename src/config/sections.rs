//! Every setting: its key, type, default and rule. What a rule cannot see of one value alone is in `read.rs`.

use super::served::ServedSettings;
use super::values::{self, LayersChoice, LoadPolicy, LogFormat, StoreUrl};
use super::{DeviceChoice, Dtype, rules};
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
#[derive(Debug, Clone, PartialEq, SmartDefault, Deserialize, Validate)]
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
    pub signing: SigningSettings,
    #[garde(dive)]
    pub log: LogSettings,
    /// Adapters that flags name, each with the id of its model.
    #[serde(skip)]
    pub named_adapters: Vec<(String, AdapterSettings)>,
}

/// Settings of the HTTP server.
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
    /// Timeout of a request.
    #[default(Duration::from_secs(60))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub request_timeout: Duration,
    /// Time for which requests are served after SIGTERM, while the service says that it is not ready.
    #[default(Duration::from_secs(5))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::delay))]
    pub drain_delay: Duration,
    /// Timeout for the head of a request to arrive, and for an idle connection.
    #[default(Duration::from_secs(15))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub header_timeout: Duration,
    /// Time for which a client may take none of an answer before its connection is closed.
    #[default(Duration::from_secs(30))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub write_timeout: Duration,
    /// Maximum number of connections; `None` for four fifths of the files that the process may open.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub connections: Option<usize>,
    /// Maximum number of connections from one address; `None` for half of all.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub connections_per_address: Option<usize>,
    /// Maximum memory of the requests in flight: bodies, uploads and answers; `None` for eight of the largest bodies and 256 MiB.
    #[serde(alias = "body_memory", deserialize_with = "values::size_or_auto")]
    #[garde(inner(custom(rules::at_least(ByteSize::b(1)))))]
    pub request_memory: Option<ByteSize>,
    /// True if a host other than loopback is served without keys.
    pub insecure_no_auth: bool,
    /// The address on which `/metrics` is served instead of beside the other routes.
    pub metrics: Option<SocketAddr>,
    /// Networks or addresses of proxies, whose headers say which client a request comes from.
    #[garde(inner(custom(rules::network)))]
    pub proxies: Vec<String>,
    /// Names by which clients know the service, where it asks for no key.
    #[garde(inner(custom(rules::host)))]
    pub hosts: Vec<String>,
    /// Origins whose pages may use the service.
    #[garde(inner(custom(rules::origin)))]
    pub cors: Vec<String>,
    /// The certificate and key of TLS; `None` for plain HTTP.
    #[garde(dive)]
    pub tls: Option<TlsSettings>,
}

/// Encryption of connections.
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

/// Access to the service.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct AuthSettings {
    /// Path of the file of keys, as `pdr-audit key` writes it; `None` if no key is needed.
    #[serde(deserialize_with = "values::optional_path")]
    pub keys: Option<PathBuf>,
    /// The file to which each request is written; `None` for no record.
    #[serde(deserialize_with = "values::optional_path")]
    pub record: Option<PathBuf>,
    /// True if clients share cached scores.
    pub share_cache: bool,
}

/// Signatures of reports.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct SigningSettings {
    /// The private key, Ed25519 as PKCS #8 in PEM; `None` if reports are not signed.
    #[serde(deserialize_with = "values::optional_path")]
    pub key_file: Option<PathBuf>,
}

/// Settings of the engine that runs models.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct EngineSettings {
    /// Where they run.
    #[default(DeviceChoice::Auto)]
    pub device: DeviceChoice,
    /// Data type of their computations.
    #[default(Dtype::Auto)]
    #[serde(deserialize_with = "values::name")]
    pub dtype: Dtype,
    /// Threads that compute; 0 for as many as the machine has. More than 1,024 would be a mistake.
    #[garde(custom(rules::within(0..=1_024)))]
    pub threads: usize,
    /// The token budget of a batch; `None` for that of the device.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub max_batch_tokens: Option<usize>,
    /// Maximum number of tokens admitted and not yet answered; `None` for a number that suits the device.
    #[serde(deserialize_with = "values::count_or_auto")]
    #[garde(inner(custom(rules::at_least(1))))]
    pub max_queue_tokens: Option<usize>,
    /// The size of the cache of token statistics in memory; 0 turns it off.
    #[default(ByteSize::mib(256))]
    #[serde(deserialize_with = "values::size")]
    pub cache: ByteSize,
    /// The directory that keeps token statistics on disk; `None` for none. A relative path from the file counts from the
    /// file's directory.
    #[serde(deserialize_with = "values::optional_path")]
    pub disk_cache: Option<PathBuf>,
    /// Maximum size of that directory. Less than 64 MiB would not keep long texts: one may take a 64th of it, 32,000 tokens.
    #[default(ByteSize::gib(4))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::mib(64))))]
    pub disk_cache_limit: ByteSize,
    /// Memory of each device that the models may take; `None` for a part of what the device has.
    #[serde(deserialize_with = "values::size_or_auto")]
    #[garde(inner(custom(rules::at_least(ByteSize::b(1)))))]
    pub memory: Option<ByteSize>,
    /// Timeout of a forward pass, after which the process counts as hung.
    #[default(Duration::from_secs(600))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::timeout))]
    pub forward_timeout: Duration,
    /// The model of requests that name none; see [`Settings::default_model`].
    pub default_model: Option<String>,
}

/// Limits of one request.
#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Maximum number of texts in a request.
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
#[derive(Debug, Clone, PartialEq, SmartDefault, Deserialize, Validate)]
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
    /// Settings of another process that runs it and knows it by `source`; `None` if it runs here.
    #[garde(dive)]
    pub served: Option<ServedSettings>,
    /// Where the files of its tokenizer come from, if it is served elsewhere, or in GGUF and that of the file is not used.
    pub tokenizer: Option<ModelSource>,
    /// Where it runs: on one device, or on several that share its queue; [`DeviceChoice::Auto`]: on the engine's device.
    #[default(vec![DeviceChoice::Auto])]
    #[serde(deserialize_with = "values::devices")]
    #[garde(custom(rules::devices))]
    pub device: Vec<DeviceChoice>,
    /// Data type of its computations; [`Dtype::Auto`]: that of the engine.
    #[default(Dtype::Auto)]
    #[serde(deserialize_with = "values::name")]
    pub dtype: Dtype,
    /// Where its layers are while it runs.
    #[default(LayersChoice::Auto)]
    #[serde(deserialize_with = "values::name")]
    pub layers: LayersChoice,
    /// The id of the model that it is compared with where a request names no other.
    pub reference: Option<String>,
    /// The id of the model that it was tuned from: the control of its audits, and its reference where that is not set.
    pub base: Option<String>,
    #[default(LoadPolicy::Eager)]
    #[serde(deserialize_with = "values::name")]
    pub load: LoadPolicy,
    /// True if it stays once it is loaded, where a lazy one makes room for others.
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
/// repository on the Hugging Face Hub; or one file in GGUF, on disk or of a repository (`hub:OWNER/NAME:FILE.gguf`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelSource {
    /// As it was written.
    pub text: String,
    /// As a path; a relative one from the file counts from the file's directory.
    pub path: PathBuf,
}

impl ModelSource {
    /// Returns true if it names one file in GGUF.
    #[must_use]
    pub fn is_gguf(&self) -> bool {
        self.text.ends_with(GGUF)
    }
}

/// How the names of files in GGUF end.
pub(super) const GGUF: &str = ".gguf";

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
    /// The database; `None` for memory, which ends with the process.
    pub url: Option<StoreUrl>,
    /// Maximum memory of a store without a database.
    #[default(ByteSize::gib(1))]
    #[serde(deserialize_with = "values::size")]
    #[garde(custom(rules::at_least(ByteSize::mib(16))))]
    pub memory: ByteSize,
    /// Time for which a finished audit is kept; `None` to keep it until somebody deletes it.
    #[serde(deserialize_with = "values::optional_duration")]
    #[garde(inner(custom(rules::retention)))]
    pub retention: Option<Duration>,
    /// Time for which an audit belongs to a process that is not heard from; after that another process runs it.
    #[default(Duration::from_secs(30))]
    #[serde(deserialize_with = "values::duration")]
    #[garde(custom(rules::lease))]
    pub lease: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq, SmartDefault, Deserialize, Validate)]
#[serde(default, deny_unknown_fields)]
#[garde(allow_unvalidated)]
pub struct LogSettings {
    #[default(LogFormat::Text)]
    #[serde(deserialize_with = "values::name")]
    pub format: LogFormat,
    /// Filter of log lines, in the syntax of tracing-subscriber's `EnvFilter`; the variable `RUST_LOG` wins over it.
    #[default = "info"]
    #[garde(custom(rules::log_filter))]
    pub level: String,
}

impl ServerSettings {
    /// Returns true if only programs of this machine reach the service.
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
