//! From the sources to checked settings, or to every fault.
//!
//! A deserializer stops at the first fault. So the value at fault is removed, which leaves its default, and what remains is
//! read again until nothing is wrong with it; then the values that have the right types are checked.

use super::sections::{DEMO, DEMO_REFERENCE, ModelSettings, Settings};
use super::served::ServedSettings;
use super::sources::{Overrides, Sources};
use super::values::ServedKind;
use super::{ConfigError, DeviceChoice, Dtype, LayersChoice, SettingFault, rules};
use figment::error::{Actual, Kind};
use garde::Validate;
use std::collections::BTreeMap;
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
    for (key, problem) in reference_errors(&settings, &faults) {
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

/// Each key at fault with what is wrong. `faults` are those of the values alone.
fn reference_errors(settings: &Settings, faults: &[SettingFault]) -> Vec<(String, String)> {
    let mut errors = Vec::new();
    // Where an id could not be read nothing can be said of names: it may be the one that is meant.
    let is_of_an_id = |key: &str| key.starts_with("models") && (!key.contains('.') || key.ends_with(".id"));
    if !faults.iter().any(|fault| is_of_an_id(&fault.key)) {
        check_names(settings, &mut errors);
    }
    check_unique("models", settings.models.iter().map(|model| model.id.as_str()), &mut errors);
    for (index, model) in settings.models.iter().enumerate() {
        errors.extend(served_faults(model).map(|(key, fault)| (format!("models[{index}].{key}"), fault.to_owned())));
        let longest = model.served.as_ref().map(ServedSettings::longest_batch);
        if let Some(longest) = longest.filter(|longest| *longest >= settings.engine.forward_timeout) {
            let fault = format!(
                "allows {} s for a batch and the check before it, which must be less than `engine.forward_timeout`: after that the \
                 process counts as hung",
                longest.as_secs_f64()
            );
            errors.push((format!("models[{index}].served.timeout"), fault));
        }
        let names = model.adapters.iter().map(|adapter| adapter.name.as_str());
        check_unique_as("name", &format!("models[{index}].adapters"), names, &mut errors);
    }
    check_unique("token_counts", settings.token_counts.iter().map(|counts| counts.id.as_str()), &mut errors);
    errors
}

/// Returns the settings that do not fit a model that is served elsewhere or, if it is not, that only fit such a model.
fn served_faults(model: &ModelSettings) -> impl Iterator<Item = (&'static str, &'static str)> {
    let (is_served, has_tokenizer) = (model.served.is_some(), model.tokenizer.is_some());
    let of_the_server = "is up to the server of a model that is served elsewhere";
    let here = "adapters run where the weights are, and the model is served elsewhere";
    let is_set = |kinds: &[ServedKind], set: fn(&ServedSettings) -> bool| {
        model.served.as_ref().is_some_and(|served| set(served) && served.kind.is_some_and(|kind| kinds.contains(&kind)))
    };
    let (engine, vllm, sglang, openai) =
        (ServedKind::PdrAudit, ServedKind::Vllm, ServedKind::Sglang, ServedKind::Openai);
    let faults = [
        (
            is_set(&[engine], |served| served.moments),
            "served.moments",
            "is of vLLM; engines of this program give them anyway",
        ),
        (is_set(&[sglang, openai], |served| served.moments), "served.moments", "is of the kind `vllm` alone"),
        (
            is_set(&[engine, vllm, sglang], |served| !served.top_logprobs),
            "served.top_logprobs",
            "is of the kind `openai` alone",
        ),
        (
            is_set(&[engine, vllm], |served| served.context.is_some()),
            "served.context",
            "is reported by the servers of this kind",
        ),
        (is_served && !has_tokenizer, "tokenizer", "is required, since the model is served elsewhere"),
        (
            !is_served && has_tokenizer && !model.source.is_gguf(),
            "tokenizer",
            "goes with `served` and with a `source` in GGUF; the directory of a model that runs here has its own",
        ),
        (is_served && model.device != [DeviceChoice::Auto], "device", of_the_server),
        (is_served && model.dtype != Dtype::Auto, "dtype", of_the_server),
        (is_served && model.layers != LayersChoice::Auto, "layers", of_the_server),
        (is_served && !model.adapters.is_empty(), "adapters", here),
    ];
    faults.into_iter().filter_map(|(is_fault, key, fault)| is_fault.then_some((key, fault)))
}

/// Checks that each of a section's ids names one thing.
fn check_unique<'s>(section: &str, ids: impl Iterator<Item = &'s str>, errors: &mut Vec<(String, String)>) {
    check_unique_as("id", section, ids, errors);
}

/// As [`check_unique`], for ids that stand under another key.
fn check_unique_as<'s>(
    key: &str,
    section: &str,
    ids: impl Iterator<Item = &'s str>,
    errors: &mut Vec<(String, String)>,
) {
    let mut first_uses: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, id) in ids.enumerate().filter(|(_, id)| rules::is_id(id)) {
        match first_uses.get(id) {
            Some(first) => {
                errors.push((
                    format!("{section}[{index}].{key}"),
                    format!("{id:?} is the {key} of {section}[{first}] already"),
                ));
            }
            None => {
                first_uses.insert(id, index);
            }
        }
    }
}

/// Checks that models named elsewhere exist.
fn check_names(settings: &Settings, errors: &mut Vec<(String, String)>) {
    let ids: Vec<&str> = match settings.models.as_slice() {
        [] => vec![DEMO, DEMO_REFERENCE],
        models => models.iter().map(|model| model.id.as_str()).collect(),
    };
    let adapted = settings
        .models
        .iter()
        .flat_map(|model| model.adapters.iter().map(|adapter| format!("{}:{}", model.id, adapter.name)));
    let adapted: Vec<String> = adapted.collect();
    let ids: Vec<&str> = ids.into_iter().chain(adapted.iter().map(String::as_str)).collect();
    let unknown = |id: &str| format!("{id:?} is no configured model; configured: {}", ids.join(", "));
    if let Some(id) = &settings.engine.default_model
        && !ids.contains(&id.as_str())
    {
        errors.push(("engine.default_model".to_owned(), unknown(id)));
    }
    for (index, model) in settings.models.iter().enumerate() {
        for (name, other) in [("reference", &model.reference), ("base", &model.base)] {
            let Some(other) = other else { continue };
            let key = format!("models[{index}].{name}");
            if *other == model.id {
                errors.push((key, format!("a model cannot be its own {name}")));
            } else if !ids.contains(&other.as_str()) {
                errors.push((key, unknown(other)));
            }
        }
    }
}
