//! Consistency between settings: ids are unique, and models named elsewhere exist.

use super::choices::ServedKind;
use super::error::SettingFault;
use super::rules;
use super::sections::{DEMO, DEMO_REFERENCE, ModelSettings, Settings};
use super::served::ServedSettings;
use super::{DeviceChoice, Dtype};
use std::collections::BTreeMap;

/// Each key at fault with what is wrong. `faults` are those of the values alone.
pub(super) fn errors(settings: &Settings, faults: &[SettingFault]) -> Vec<(String, String)> {
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
    let of_engines =
        model.served.as_ref().is_some_and(|served| served.moments && served.kind == Some(ServedKind::PdrAudit));
    let faults = [
        (of_engines, "served.moments", "is of vLLM; engines of this program give them anyway"),
        (is_served && !has_tokenizer, "tokenizer", "is required, since the model is served elsewhere"),
        (!is_served && has_tokenizer, "tokenizer", "goes with `served` alone; a model that runs here has its own"),
        (is_served && model.device != [DeviceChoice::Auto], "device", of_the_server),
        (is_served && model.dtype != Dtype::Auto, "dtype", of_the_server),
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
        let Some(reference) = &model.reference else { continue };
        let key = format!("models[{index}].reference");
        if *reference == model.id {
            errors.push((key, "a model cannot be its own reference".to_owned()));
        } else if !ids.contains(&reference.as_str()) {
            errors.push((key, unknown(reference)));
        }
    }
}
