//! What must hold between keys, and of values whose type says too little.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use super::reader::Reader;
use super::{DEMO, DEMO_REFERENCE, Settings};

/// The longest id.
const LONGEST_ID: usize = 100;

/// Notes every fault of settings whose keys have been read.
pub(super) fn check(settings: &Settings, reader: &mut Reader<'_>) {
    let host = &settings.server.host;
    if let Err(problem) = check_host(host) {
        reader.fault("server.host", problem);
    }
    check_names(settings, reader);
    check_ids("models", settings.models.iter().map(|model| model.id.as_str()), reader);
    check_ids("token_counts", settings.token_counts.iter().map(|counts| counts.id.as_str()), reader);
}

fn check_host(host: &str) -> Result<(), String> {
    let is_name = host.chars().all(|character| !character.is_whitespace() && !"/:[]".contains(character));
    if host.is_empty() || !(is_name || host.parse::<Ipv6Addr>().is_ok()) {
        return Err(format!("expected a host name or an address without port and brackets, got {host:?}"));
    }
    Ok(())
}

/// Checks that each of a section's ids can be named, and names one thing.
fn check_ids<'s>(section: &str, ids: impl Iterator<Item = &'s str>, reader: &mut Reader<'_>) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, id) in ids.enumerate() {
        let key = format!("{section}[{index}].id");
        if reader.any_faulty(|faulty| faulty == key) {
            continue;
        }
        if !is_id(id) {
            let problem = format!("expected 1 to {LONGEST_ID} of the characters A-Z a-z 0-9 . _ -, got {id:?}");
            reader.fault(&key, problem);
        } else if let Some(first) = seen.get(id) {
            reader.fault(&key, format!("{id:?} is the id of {section}[{first}] already"));
        } else {
            seen.insert(id, index);
        }
    }
}

/// Whether requests can name a thing so. Ids stand in paths of the API, where `.` and `..` mean something else.
fn is_id(id: &str) -> bool {
    let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    (1..=LONGEST_ID).contains(&id.len()) && id.bytes().all(is_legal) && id != "." && id != ".."
}

/// Checks that models named elsewhere exist.
fn check_names(settings: &Settings, reader: &mut Reader<'_>) {
    // Where an id could not be read nothing can be said of names: it may be the one that is meant.
    if reader.any_faulty(|key| key.starts_with("models") && (!key.contains('.') || key.ends_with(".id"))) {
        return;
    }
    let ids: Vec<&str> = match settings.models.as_slice() {
        [] => vec![DEMO, DEMO_REFERENCE],
        models => models.iter().map(|model| model.id.as_str()).collect(),
    };
    let unknown = |id: &str| format!("{id:?} is no configured model; configured: {}", ids.join(", "));
    if let Some(id) = &settings.engine.default_model
        && !ids.contains(&id.as_str())
    {
        reader.fault("engine.default_model", unknown(id));
    }
    for (index, model) in settings.models.iter().enumerate() {
        let Some(reference) = &model.reference else { continue };
        if *reference == model.id {
            reader.fault(&format!("models[{index}].reference"), "a model cannot be its own reference".to_owned());
        } else if !ids.contains(&reference.as_str()) {
            reader.fault(&format!("models[{index}].reference"), unknown(reference));
        }
    }
}
