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
mod model_flags;
mod read;
mod references;
mod rules;
mod sections;
mod served;
mod sources;
mod store_url;
#[cfg(test)]
mod tests;
mod values;

pub use bytesize::ByteSize;
pub use choices::{LoadPolicy, LogFormat, ServedKind};
pub use error::{ConfigError, SettingFault};
pub use lm::models::device::DeviceChoice;
pub use lm::models::precision::Dtype;
pub use model_flags::ModelFlags;
pub use rules::{ID_RULE, is_id};
pub use sections::{
    AdapterSettings, AuthSettings, DEMO, DEMO_REFERENCE, EngineSettings, LimitSettings, LogSettings, ModelSettings,
    ModelSource, ServerSettings, Settings, StoreSettings, TlsSettings, TokenCountsSettings,
};
pub use served::ServedSettings;
pub use sources::Overrides;
pub use store_url::StoreUrl;
