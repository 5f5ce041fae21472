//! The sources of the settings: layers of keys and values. The later layer wins, and every value knows where it came from.

use super::{ConfigError, SettingFault};
use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Prefix of the names of variables; two underscores also separate their parts.
const PREFIX: &str = "PDR_AUDIT__";
const SEPARATOR: &str = "__";

/// The sections of the settings, as they are written in variables.
const SECTIONS: [&str; 9] = ["SERVER", "ENGINE", "LIMITS", "MODELS", "TOKEN_COUNTS", "STORE", "AUTH", "SIGNING", "LOG"];

/// Settings of the command line; they win over all other sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub insecure_no_auth: bool,
}

/// All sources; the last one wins. Arrays are replaced as a whole.
#[derive(Default)]
pub(super) struct Sources {
    layers: Vec<SourceLayer>,
    /// Faults of the sources themselves.
    pub(super) faults: Vec<SettingFault>,
}

/// One source: its values and where they come from.
#[derive(Clone)]
struct SourceLayer {
    metadata: Metadata,
    values: Dict,
    /// The dotted key and the unparsed text of a variable: a model may well be called `1e3`.
    text: Option<(String, String)>,
}

impl Sources {
    /// Reads the file, the environment and the flags, in the order in which they win.
    pub(super) fn read(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let mut sources = Self::default();
        if let Some((path, text)) = file {
            let values = Toml::from_str(text)
                .map_err(|error| ConfigError::Syntax { path: path.to_owned(), problem: error.to_string() })?;
            let metadata = Metadata::from(format!("the file {}", path.display()), path);
            sources.layers.push(SourceLayer { metadata, values, text: None });
        }
        sources.add_environment(environment);
        if let Some(host) = &overrides.host {
            sources.add("the flag --host".to_owned(), "server.host", Value::from(host.as_str()), None);
        }
        if overrides.insecure_no_auth {
            let origin = "the flag --insecure-no-auth".to_owned();
            sources.add(origin, "server.insecure_no_auth", Value::from(true), None);
        }
        if let Some(port) = overrides.port {
            sources.add("the flag --port".to_owned(), "server.port", Value::from(port), None);
        }
        Ok(sources)
    }

    fn add_environment(&mut self, environment: impl IntoIterator<Item = (OsString, OsString)>) {
        // In the order of keys, so that of `A` and `A__B` the narrower comes later and wins.
        let mut variables = BTreeMap::new();
        for (name, value) in environment {
            if let Some(fault) = misspelt(&name, &value) {
                self.faults.push(fault);
                continue;
            }
            let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            let key = key.to_ascii_lowercase().replace(SEPARATOR, ".");
            let origin = format!("the environment variable {}", name.display());
            match value.into_string() {
                Ok(text) => {
                    variables.insert(key, (origin, text));
                }
                Err(_) => {
                    let problem = "expected text in UTF-8".to_owned();
                    self.faults.push(SettingFault { key, problem, origin: Some(origin) });
                }
            }
        }
        for (key, (origin, text)) in variables {
            self.add(origin, &key, parse(&text), Some((key.clone(), text)));
        }
    }

    fn add(&mut self, origin: String, key: &str, value: Value, text: Option<(String, String)>) {
        self.layers.push(SourceLayer { metadata: Metadata::named(origin), values: nest(key, value), text });
    }

    /// All layers as one.
    pub(super) fn figment(&self) -> Figment {
        self.layers.iter().fold(Figment::new(), Figment::merge)
    }

    /// Takes the text of the variable that gave `path` its value for what it is, where that was read as a number or the like.
    /// Says whether there was one.
    pub(super) fn read_as_text(&mut self, path: &[String]) -> bool {
        let key = path.join(".");
        let is_meant = |layer: &&mut SourceLayer| layer.text.as_ref().is_some_and(|(of, _)| *of == key);
        let Some(layer) = self.layers.iter_mut().rev().find(is_meant) else { return false };
        let Some((key, text)) = layer.text.take() else { return false };
        layer.values = nest(&key, Value::from(text));
        true
    }

    /// Forgets the values at `path`, so that what else is wrong shows. Says whether there were any.
    pub(super) fn remove(&mut self, path: &[String]) -> bool {
        self.layers.iter_mut().fold(false, |removed, layer| remove(&mut layer.values, path) | removed)
    }

    /// Where the value of a key came from, and whether there is one; where there is none, where its table came from.
    pub(super) fn origin(&self, key: &str) -> (Option<String>, bool) {
        let figment = self.figment();
        let Ok(root) = figment.find_value("") else { return (None, false) };
        let (mut value, mut exists) = (&root, true);
        for part in key.split(['.', '[', ']']).filter(|part| !part.is_empty()) {
            let child = match value {
                Value::Dict(_, values) => values.get(part),
                Value::Array(_, values) => part.parse().ok().and_then(|index: usize| values.get(index)),
                _ => None,
            };
            match child {
                Some(child) => value = child,
                None => {
                    exists = false;
                    break;
                }
            }
        }
        (figment.get_metadata(value.tag()).map(|metadata| metadata.name.to_string()), exists)
    }
}

impl Provider for SourceLayer {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.values.clone()))
    }
}

/// Removes the value at `path`. If it is an element of an array, the whole array is removed, since the others would move.
fn remove(values: &mut Dict, path: &[String]) -> bool {
    let Some((key, rest)) = path.split_first() else { return false };
    let removed = match (values.get_mut(key), rest) {
        (Some(Value::Dict(_, inner)), [_, ..]) => return remove(inner, rest),
        (Some(Value::Array(_, elements)), [index, rest @ ..]) if !rest.is_empty() => {
            match index.parse().ok().and_then(|index: usize| elements.get_mut(index)) {
                Some(Value::Dict(_, inner)) => return remove(inner, rest),
                _ => return false,
            }
        }
        (Some(Value::Array(..)), _) | (Some(_), []) => values.remove(key),
        _ => None,
    };
    removed.is_some()
}

/// The tree that holds only `value`, at the dotted `key`.
fn nest(key: &str, value: Value) -> Dict {
    let (first, rest) = key.split_once('.').unwrap_or((key, ""));
    let value = if rest.is_empty() { value } else { Value::from(nest(rest, value)) };
    Dict::from([(first.to_owned(), value)])
}

/// A variable's value: TOML where it is TOML, text where it is not.
fn parse(text: &str) -> Value {
    let parsed = Toml::from_str::<Dict>(&format!("value = {text}")).ok();
    let only = parsed.filter(|dict| dict.len() == 1).and_then(|mut dict| dict.remove("value"));
    match only {
        // Dates come as tables of the parser's own; no key takes one, so they are the text that they look like.
        Some(Value::Dict(..)) if !text.trim_start().starts_with('{') => Value::from(text),
        Some(value) => value,
        None => Value::from(text),
    }
}

/// The fault of a variable that names a section and has one underscore where two belong. Variables of this program's prefix that
/// Kubernetes sets for a service of a like name are none.
fn misspelt(name: &OsStr, value: &OsStr) -> Option<SettingFault> {
    let name = name.to_str()?;
    let key = name.strip_prefix(PREFIX.trim_end_matches('_'))?.trim_start_matches('_');
    let (section, setting) = SECTIONS.iter().find_map(|section| {
        let setting = key.strip_prefix(section).filter(|rest| rest.is_empty() || rest.starts_with('_'))?;
        Some((section, setting.trim_start_matches('_')))
    })?;
    let whole = format!("{PREFIX}{section}");
    let right = if setting.is_empty() { whole.clone() } else { format!("{whole}{SEPARATOR}{setting}") };
    let is_link = name.contains("_SERVICE_") || name.contains("_PORT_") || value.to_string_lossy().contains("://");
    let is_right = name == whole || name.starts_with(&format!("{whole}{SEPARATOR}"));
    (!is_right && !is_link).then(|| SettingFault {
        key: name.to_owned(),
        problem: format!("unknown; two underscores separate the parts of a name: {right}"),
        origin: Some("the environment".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Settings;

    fn faults(name: &str, value: &str) -> Option<String> {
        let sources = [(OsString::from(name), OsString::from(value))];
        Settings::from_sources(None, sources, &Overrides::default()).err().map(|error| error.to_string())
    }

    #[test]
    fn one_underscore_is_no_separator() {
        for name in ["PDR_AUDIT_SERVER_PORT", "PDR_AUDIT__SERVER_PORT", "PDR_AUDIT_SERVER__PORT"] {
            let said = faults(name, "9000").unwrap();
            assert!(said.contains(&format!("`{name}`")) && said.contains("PDR_AUDIT__SERVER__PORT"), "{said}");
        }
        assert!(faults("PDR_AUDIT_MODELS", "[]").unwrap().ends_with("PDR_AUDIT__MODELS (from the environment)"));
        assert_eq!(faults("PDR_AUDIT__SERVER__PORT", "9000"), None);
        assert_eq!(faults("PDR_AUDIT__MODELS", "[]"), None);
        assert_eq!(faults("PDR_AUDIT_TEST_ALONE", "true"), None);
        for (name, value) in [
            ("PDR_AUDIT_SERVER_PORT", "tcp://10.0.0.1:8080"),
            ("PDR_AUDIT_SERVER_PORT_8080_TCP_PROTO", "tcp"),
            ("PDR_AUDIT_SERVER_SERVICE_HOST", "10.0.0.1"),
            ("PDR_AUDIT_SERVICE_PORT", "8080"),
        ] {
            assert_eq!(faults(name, value), None, "{name}");
        }
    }

    #[test]
    fn every_section_is_known() {
        let said = faults("PDR_AUDIT__NOPE", "1").unwrap();
        let sections: Vec<String> = SECTIONS.iter().map(|section| section.to_ascii_lowercase()).collect();
        assert!(said.contains(&format!("known here: {}", sections.join(", "))), "{said}");
    }
}
