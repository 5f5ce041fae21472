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

mod model_flags;
mod read;
mod rules;
mod sections;
mod served;
mod sources;
#[cfg(test)]
mod tests;
mod values;

pub use bytesize::ByteSize;
pub use lm::models::device::DeviceChoice;
pub use lm::models::precision::Dtype;
pub use model_flags::ModelFlags;
pub use rules::{ID_RULE, is_id, parse_network};
pub use sections::{
    AdapterSettings, AuthSettings, DEMO, DEMO_REFERENCE, EngineSettings, LimitSettings, LogSettings, ModelSettings,
    ModelSource, ServerSettings, Settings, SigningSettings, StoreSettings, TlsSettings, TokenCountsSettings,
};
pub use served::ServedSettings;
pub use sources::Overrides;
pub use values::{LayersChoice, LoadPolicy, LogFormat, ServedKind, StoreUrl};

use std::fmt;
use std::path::PathBuf;

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("the configuration file {} is not valid TOML: {problem}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Message of the parser, with line and column.
        problem: String,
    },
    /// Keys or values are invalid; these are all of them.
    #[error("{}", list(.0))]
    Invalid(Vec<SettingFault>),
}

/// One thing wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFault {
    /// The key with its section, as in `server.port` or `models[0].id`.
    pub key: String,
    pub problem: String,
    /// Source of the value; `None` if there is no value.
    pub origin: Option<String>,
}

impl fmt::Display for SettingFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}", self.key, self.problem)?;
        match &self.origin {
            Some(origin) => write!(formatter, " (from {origin})"),
            None => Ok(()),
        }
    }
}

fn list(faults: &[SettingFault]) -> String {
    let lines: String = faults.iter().map(|fault| format!("\n  {fault}")).collect();
    format!("the configuration is invalid:{lines}")
}
