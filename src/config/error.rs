//! Errors of a configuration.

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
