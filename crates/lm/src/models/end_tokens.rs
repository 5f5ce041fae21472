//! The tokens that end a text which a model writes.

use super::config_reader::standard_json;
use super::error::ModelError;
use super::files::ModelFiles;
use serde_json::Value;
use std::sync::Arc;

const KEY: &str = "eos_token_id";

/// The files that may have the key, the one that transformers obeys first.
const FILES: [&str; 2] = ["generation_config.json", "config.json"];

/// The ids that end a text, by the first file that names any; none if no file does.
///
/// # Errors
/// [`ModelError::File`] if a file is not a JSON object, or if what it names are no ids.
pub fn end_tokens(files: &ModelFiles) -> Result<Arc<[u32]>, ModelError> {
    for name in FILES {
        let Some(bytes) = files.find(name)? else { continue };
        let file: Value = serde_json::from_slice(&standard_json(&bytes)).map_err(|error| files.error(name, error))?;
        let file = file.as_object().ok_or_else(|| files.error(name, "expected a JSON object"))?;
        let named = match file.get(KEY) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(ids)) => ids.as_slice(),
            Some(id) => std::slice::from_ref(id),
        };
        let ids: Option<Arc<[u32]>> = named.iter().map(token_id).collect();
        return ids.ok_or_else(|| {
            files.error(name, format!("key `{KEY}`: expected a token id or a list of them; it is {}", file[KEY]))
        });
    }
    Ok(Arc::new([]))
}

/// Some files have -1 where a model has no such token; it is an id that no model writes.
fn token_id(value: &Value) -> Option<u32> {
    match value.as_i64()? {
        -1 => Some(u32::MAX),
        id => u32::try_from(id).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(generation: Option<&str>, config: Option<&str>) -> Result<Vec<u32>, String> {
        let file = |(name, text): (&str, Option<&str>)| Some((name.to_owned(), text?.as_bytes().to_vec()));
        let files: Vec<_> = FILES.into_iter().zip([generation, config]).filter_map(file).collect();
        end_tokens(&ModelFiles::Memory(files.into())).map(|ids| ids.to_vec()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_settings_of_generation_come_first() {
        for (generation, config, expected) in [
            (None, None, vec![]),
            (None, Some("{}"), vec![]),
            (None, Some(r#"{ "eos_token_id": 7 }"#), vec![7]),
            (Some("{}"), Some(r#"{ "eos_token_id": 7, "rope": Infinity }"#), vec![7]),
            (Some(r#"{ "eos_token_id": null }"#), Some(r#"{ "eos_token_id": 0 }"#), vec![0]),
            (Some(r#"{ "eos_token_id": [1, 2] }"#), Some(r#"{ "eos_token_id": 7 }"#), vec![1, 2]),
            (None, Some(r#"{ "eos_token_id": -1 }"#), vec![u32::MAX]),
        ] {
            assert_eq!(ends(generation, config), Ok(expected), "{generation:?} {config:?}");
        }
    }

    #[test]
    fn what_names_no_ids_is_refused_with_its_file() {
        for (config, fault) in [
            (
                r#"{ "eos_token_id": "a" }"#,
                r#"config.json: key `eos_token_id`: expected a token id or a list of them; it is "a""#,
            ),
            (r#"{ "eos_token_id": [1, 1.5] }"#, "it is [1,1.5]"),
            (r#"{ "eos_token_id": 99999999999 }"#, "it is 99999999999"),
            ("[]", "config.json: expected a JSON object"),
            ("{", "config.json: EOF"),
        ] {
            let said = ends(None, Some(config)).unwrap_err();
            assert!(said.contains(fault), "{said}");
        }
        assert!(ends(Some("x"), None).unwrap_err().starts_with("generation_config.json"));
    }
}
