//! The sources of the settings, merged into one tree of which every value knows where it came from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use figment::providers::{Format, Toml};
use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::{ConfigError, Fault, Overrides};

/// What the names of variables begin with; two underscores also stand between their parts.
const PREFIX: &str = "PDR_AUDIT__";
const SEPARATOR: &str = "__";

/// All sources as one.
pub(super) struct Sources {
    figment: Figment,
    /// The tree.
    pub(super) root: Value,
    /// The unparsed text of variables by their keys: a model may well be called `1e3`.
    pub(super) variables: BTreeMap<String, String>,
    /// What is wrong with the sources themselves.
    pub(super) faults: Vec<Fault>,
}

impl Sources {
    /// Merges the file, the environment and the flags; the later wins, arrays are replaced as a whole.
    pub(super) fn merge(
        file: Option<(&Path, &str)>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
        overrides: &Overrides,
    ) -> Result<Self, ConfigError> {
        let mut figment = Figment::new();
        let mut faults = Vec::new();
        if let Some((path, text)) = file {
            let dict = Toml::from_str(text)
                .map_err(|error| ConfigError::Syntax { path: path.to_owned(), problem: error.to_string() })?;
            let metadata = Metadata::from(format!("the file {}", path.display()), path);
            figment = figment.merge(Source { metadata, dict });
        }

        // In the order of keys, so that of `A` and `A__B` the narrower is merged later and wins.
        let mut variables = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (name, value) in environment {
            let Some(key) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else { continue };
            let key = key.to_ascii_lowercase().replace(SEPARATOR, ".");
            let origin = format!("the environment variable {}", name.display());
            match value.into_string() {
                Ok(text) => {
                    names.insert(key.clone(), origin);
                    variables.insert(key, text);
                }
                Err(_) => {
                    faults.push(Fault { key, problem: "expected text in UTF-8".to_owned(), origin: Some(origin) })
                }
            }
        }
        for (key, text) in &variables {
            let name = names.remove(key).unwrap_or_default();
            figment = figment.merge(Source { metadata: Metadata::named(name), dict: nest(key, parse(text)) });
        }

        if let Some(host) = &overrides.host {
            let dict = nest("server.host", Value::from(host.as_str()));
            figment = figment.merge(Source { metadata: Metadata::named("the flag --host"), dict });
        }
        if let Some(port) = overrides.port {
            let dict = nest("server.port", Value::from(port));
            figment = figment.merge(Source { metadata: Metadata::named("the flag --port"), dict });
        }
        let root = figment.find_value("").map_err(|error| ConfigError::Merge(error.to_string()))?;
        Ok(Self { figment, root, variables, faults })
    }

    /// Where a value came from.
    pub(super) fn origin(&self, value: &Value) -> Option<String> {
        self.figment.get_metadata(value.tag()).map(|metadata| metadata.name.to_string())
    }

    /// The file that a value came from.
    pub(super) fn file(&self, value: &Value) -> Option<&Path> {
        self.figment.get_metadata(value.tag())?.source.as_ref()?.file_path()
    }
}

/// One source: a tree and where it came from.
struct Source {
    metadata: Metadata,
    dict: Dict,
}

impl Provider for Source {
    fn metadata(&self) -> Metadata {
        self.metadata.clone()
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Profile::Default.collect(self.dict.clone()))
    }
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
