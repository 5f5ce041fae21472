//! The ids of models under adapters: `<model>:<adapter>`.

/// Separator between the id of a model and the name of its adapter.
const SEPARATOR: char = ':';

/// The id of the model, without the adapter that may follow it.
pub fn base_id(id: &str) -> &str {
    split(id).0
}

/// The id of an adapted model.
pub fn adapted_id(base: &str, adapter: &str) -> String {
    format!("{base}{SEPARATOR}{adapter}")
}

/// The id of the model, and the name of the adapter that follows it.
pub(super) fn split(id: &str) -> (&str, Option<&str>) {
    id.split_once(SEPARATOR).map_or((id, None), |(base, adapter)| (base, Some(adapter)))
}
