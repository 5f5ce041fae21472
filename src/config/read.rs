//! From the sources to checked settings, or to every fault.
//!
//! A deserializer stops at the first fault. So the value at fault is removed, which leaves its default, and what remains is
//! read again until nothing is wrong with it; then the values that have the right types are checked.

use super::error::{ConfigError, SettingFault};
use super::references;
use super::sections::Settings;
use super::sources::{Overrides, Sources};
use figment::error::{Actual, Kind};
use garde::Validate;
use std::ffi::OsString;
use std::path::Path;

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
    /// the environment; those without the prefix `PDR_AUDIT__` are ignored.
    pub fn from_sources(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        read(Sources::read(file, environment, overrides)?)
    }
}

/// The settings that the sources give.
fn read(mut sources: Sources) -> Result<Settings, ConfigError> {
    let mut faults = std::mem::take(&mut sources.faults);
    let settings: Settings = loop {
        match sources.figment().extract() {
            Ok(settings) => break settings,
            Err(error) => {
                if wants_text(&error.kind) && sources.read_as_text(&error.path) {
                    continue;
                }
                // The parts of a path are keys of the tree but for those that figment puts around a relative path.
                let path: Vec<String> = error.path.into_iter().filter(|part| !part.starts_with("___figment")).collect();
                let origin = error.metadata.map(|metadata| metadata.name.into_owned());
                faults.push(SettingFault { key: dotted(&path), problem: problem(&error.kind), origin });
                if !sources.remove(&path) {
                    return Err(ConfigError::Invalid(faults));
                }
            }
        }
    };
    let add = |faults: &mut Vec<SettingFault>, key: String, problem: String| {
        if faults.iter().any(|fault| fault.key == key) {
            return;
        }
        let (origin, exists) = sources.origin(&key);
        // Defaults are valid, but for those of keys that have none.
        let problem = if exists { problem } else { "is required".to_owned() };
        faults.push(SettingFault { key, problem, origin });
    };
    if let Err(report) = settings.validate() {
        for (path, error) in report.iter() {
            add(&mut faults, path.to_string(), error.to_string());
        }
    }
    for (key, problem) in references::errors(&settings, &faults) {
        add(&mut faults, key, problem);
    }
    if faults.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid(faults)) }
}

fn wants_text(kind: &Kind) -> bool {
    matches!(kind, Kind::InvalidType(Actual::Bool(_) | Actual::Unsigned(_) | Actual::Signed(_) | Actual::Float(_), expected)
        if expected.contains("string"))
}

/// The path as in `models[0].id`.
fn dotted(path: &[String]) -> String {
    let mut key = String::new();
    for part in path {
        if part.bytes().all(|byte| byte.is_ascii_digit()) && !key.is_empty() {
            key += &format!("[{part}]");
        } else {
            key += if key.is_empty() { "" } else { "." };
            key += part;
        }
    }
    key
}

/// Describes the problem in the words of the file rather than of Rust's types.
fn problem(kind: &Kind) -> String {
    match kind {
        Kind::InvalidType(actual, expected) | Kind::InvalidValue(actual, expected) => {
            let expected = match expected.as_str() {
                "u16" => "a whole number from 0 to 65535",
                "usize" => "a whole number",
                "a boolean" => "true or false",
                "path string" => "a string",
                "a sequence" => "an array of tables",
                expected if expected.starts_with("struct ") => "a table",
                expected => expected,
            };
            format!("expected {expected}, got {}", describe(actual))
        }
        Kind::UnknownVariant(name, names) => {
            let names: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
            format!("expected {}, got {name:?}", names.join(" or "))
        }
        Kind::UnknownField(_, known) => format!("unknown key; known here: {}", known.join(", ")),
        other => other.to_string(),
    }
}

/// The value in words.
fn describe(actual: &Actual) -> String {
    match actual {
        Actual::Bool(value) => value.to_string(),
        Actual::Unsigned(number) => number.to_string(),
        Actual::Signed(number) => number.to_string(),
        Actual::Float(number) => format!("{number:?}"),
        Actual::Char(character) => format!("{character:?}"),
        Actual::Str(text) => format!("{text:?}"),
        Actual::Seq => "an array".to_owned(),
        Actual::Map => "a table".to_owned(),
        other => other.to_string(),
    }
}
