//! Special and added tokens, which are never split by merges. Three files may define them.

use super::TokenizerError;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The roles of special tokens in the order in which transformers adds them to a vocabulary that lacks them.
const ROLES: [&str; 7] = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];
const ADDITIONAL: &str = "additional_special_tokens";

/// The default of `GPT2Tokenizer` for the roles of [`WITH_DEFAULT`].
const DEFAULT: &str = "<|endoftext|>";
const WITH_DEFAULT: [&str; 3] = ["bos_token", "eos_token", "unk_token"];

/// A token and how it is matched, in the format of `tokenizer.json`.
#[derive(Clone, Debug, Serialize)]
pub struct AddedToken {
    pub content: String,
    single_word: bool,
    lstrip: bool,
    rstrip: bool,
    normalized: bool,
    special: bool,
}

/// The tokens of the three files.
#[derive(Debug)]
pub struct Special {
    /// In the order in which they get ids, each with the id that a file declares. Contents are unique and not empty.
    pub tokens: Vec<(Option<u32>, AddedToken)>,
    pub bos: Option<String>,
}

impl Special {
    /// Reads only `tokenizer_config.json` if it has `added_tokens_decoder`; the other two files predate it.
    pub fn read(config: &Map<String, Value>, map: Option<&[u8]>, added: Option<&[u8]>) -> Result<Self, TokenizerError> {
        let (named, added) = match config.get("added_tokens_decoder") {
            Some(decoder) => (named(config)?, by_id(decoder)?),
            None => {
                let named = named(&overlaid(config, object("special_tokens_map.json", map)?))?;
                let added = added_by_id(object("added_tokens.json", added)?, &named)?;
                (named, added)
            }
        };
        let bos = named.iter().find(|(role, _)| *role == "bos_token").map(|(_, token)| token.content.clone());
        let with_id = added.into_iter().map(|(id, token)| (Some(id), token));
        let mut tokens: Vec<(Option<u32>, AddedToken)> = Vec::new();
        for (id, token) in with_id.chain(named.into_iter().map(|(_, token)| (None, token))) {
            if !token.content.is_empty() && tokens.iter().all(|(_, other)| other.content != token.content) {
                tokens.push((id, token));
            }
        }
        Ok(Self { tokens, bos })
    }
}

/// The contents of the tokens that have a role, as chat templates see them.
#[derive(Clone, Debug, Default)]
pub struct SpecialTokens {
    /// Each by its role.
    pub named: Vec<(&'static str, String)>,
    pub additional: Vec<String>,
}

impl SpecialTokens {
    /// Reads `tokenizer_config.json`, overridden by `special_tokens_map.json` if it predates `added_tokens_decoder`.
    pub fn read(config: &Map<String, Value>, map: Option<&[u8]>) -> Result<Self, TokenizerError> {
        let map = map.filter(|_| !config.contains_key("added_tokens_decoder"));
        let settings = overlaid(config, object("special_tokens_map.json", map)?);
        let mut tokens = Self::default();
        for role in ROLES {
            if let Some(value) = settings.get(role).filter(|value| !value.is_null()) {
                tokens.named.push((role, token(role, value, false)?.content));
            }
        }
        for value in settings.get(ADDITIONAL).and_then(Value::as_array).into_iter().flatten() {
            tokens.additional.push(token(ADDITIONAL, value, false)?.content);
        }
        Ok(tokens)
    }
}

/// A file that contains a JSON object; an empty object if the file does not exist.
pub fn object(name: &str, bytes: Option<&[u8]>) -> Result<Map<String, Value>, TokenizerError> {
    let Some(bytes) = bytes else { return Ok(Map::new()) };
    serde_json::from_slice(bytes).map_err(|e| TokenizerError(format!("{name}: {e}")))
}

/// The configuration, overridden by `special_tokens_map.json`.
fn overlaid(config: &Map<String, Value>, map: Map<String, Value>) -> Map<String, Value> {
    let mut settings = config.clone();
    for (key, value) in map {
        match (settings.get_mut(&key), value) {
            (Some(Value::Array(known)), Value::Array(more)) if key == ADDITIONAL => known.extend(more),
            (_, value) => drop(settings.insert(key, value)),
        }
    }
    settings
}

/// The tokens that have a role, in the order of the roles.
fn named(settings: &Map<String, Value>) -> Result<Vec<(&'static str, AddedToken)>, TokenizerError> {
    let mut named = Vec::new();
    for role in ROLES {
        let default = WITH_DEFAULT.contains(&role).then(|| Value::from(DEFAULT));
        if let Some(value) = settings.get(role).or(default.as_ref()).filter(|value| !value.is_null()) {
            // The class passes these four as tokens to be matched after normalization, and others unchanged.
            let normalized = WITH_DEFAULT.contains(&role) || role == "pad_token";
            named.push((role, token(role, value, normalized)?));
        }
    }
    match settings.get(ADDITIONAL) {
        None | Some(Value::Null) => {}
        Some(Value::Array(values)) => {
            for value in values {
                named.push((ADDITIONAL, token(ADDITIONAL, value, false)?));
            }
        }
        Some(other) => return Err(error(ADDITIONAL, format!("expected a list, found {other}"))),
    }
    Ok(named)
}

/// A special token given as a string or an object.
fn token(key: &str, value: &Value, normalized: bool) -> Result<AddedToken, TokenizerError> {
    let token = match value {
        Value::String(content) => AddedToken {
            content: content.clone(),
            single_word: false,
            lstrip: false,
            rstrip: false,
            normalized,
            special: true,
        },
        object => parse(key, object)?,
    };
    Ok(AddedToken { special: true, ..token })
}

/// A token in the format of transformers; flags may be absent.
fn parse(key: &str, value: &Value) -> Result<AddedToken, TokenizerError> {
    #[derive(Deserialize)]
    struct Fields {
        content: String,
        #[serde(default)]
        single_word: bool,
        #[serde(default)]
        lstrip: bool,
        #[serde(default)]
        rstrip: bool,
        normalized: Option<bool>,
        #[serde(default)]
        special: bool,
    }
    let Fields { content, single_word, lstrip, rstrip, normalized, special } =
        Fields::deserialize(value).map_err(|e| error(key, e.to_string()))?;
    Ok(AddedToken { content, single_word, lstrip, rstrip, normalized: normalized.unwrap_or(!special), special })
}

/// `added_tokens_decoder`: tokens by id.
fn by_id(decoder: &Value) -> Result<BTreeMap<u32, AddedToken>, TokenizerError> {
    const KEY: &str = "added_tokens_decoder";
    let decoder = decoder.as_object().ok_or_else(|| error(KEY, "expected an object".into()))?;
    decoder
        .iter()
        .map(|(id, value)| {
            let id = id.parse().map_err(|e| error(KEY, format!("{id:?}: {e}")))?;
            Ok((id, parse(KEY, value)?))
        })
        .collect()
}

/// `added_tokens.json`: ids by token. Those that have a role are special.
fn added_by_id(
    file: Map<String, Value>,
    named: &[(&str, AddedToken)],
) -> Result<BTreeMap<u32, AddedToken>, TokenizerError> {
    let mut added = BTreeMap::new();
    for (content, value) in file {
        let id =
            u32::deserialize(&value).map_err(|e| TokenizerError(format!("added_tokens.json: {content:?}: {e}")))?;
        let special = named.iter().any(|(_, token)| token.content == content);
        let token =
            AddedToken { content, single_word: false, lstrip: false, rstrip: false, normalized: !special, special };
        if let Some(other) = added.insert(id, token) {
            return Err(TokenizerError(format!(
                "added_tokens.json: {:?} and another token both have id {id}",
                other.content
            )));
        }
    }
    Ok(added)
}

fn error(key: &str, reason: String) -> TokenizerError {
    TokenizerError(format!("special tokens: key `{key}`: {reason}"))
}
