//! A chat template as a model's files give it.

use super::environment::{environment, without_generation};
use super::error::{ChatError, shortened};
use super::program::{ADD, Program, add};
use crate::panics::caught_on_large_stack;
use crate::tokenizer::SpecialTokens;
use minijinja::{Environment, Value};
use serde_json::{Map, Value as Json};
use std::fmt;
use std::fmt::Display;
use std::ops::Deref;

/// File of a template beside the tokenizer's, which comes before the one in the configuration.
pub const TEMPLATE_FILE: &str = "chat_template.jinja";
const CONFIG_FILE: &str = "tokenizer_config.json";
const MAP_FILE: &str = "special_tokens_map.json";
/// Key of the configuration.
const KEY: &str = "chat_template";
/// Name of the template that counts, where there are several.
const DEFAULT: &str = "default";
/// Maximum size of a template in bytes.
const MAX_TEMPLATE: usize = 64 << 10;

/// A template that renders conversations.
#[derive(Clone)]
pub struct ChatTemplate {
    pub(super) source: String,
    /// Special tokens by role, as the template sees them.
    pub(super) tokens: Vec<(&'static str, Value)>,
    pub(super) environment: Environment<'static>,
}

impl fmt::Debug for ChatTemplate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("ChatTemplate").field("source", &self.source).finish_non_exhaustive()
    }
}

impl PartialEq for ChatTemplate {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source && self.tokens == other.tokens
    }
}

impl ChatTemplate {
    /// Reads the template of a tokenizer. `find` returns the content of a file, or `None` if it does not exist.
    ///
    /// # Errors
    /// Where there is no template, or it cannot be used.
    pub fn from_files<B, E>(find: impl Fn(&'static str) -> Result<Option<B>, E>) -> Result<Self, ChatError>
    where
        B: Deref<Target = [u8]>,
        E: Display,
    {
        let read = |file| find(file).map_err(|fault| ChatError::File { file, fault: fault.to_string() });
        let config = config(read(CONFIG_FILE)?.as_deref())?;
        let source = match read(TEMPLATE_FILE)? {
            Some(bytes) => str::from_utf8(&bytes).map(str::to_owned).map_err(|fault| in_file(TEMPLATE_FILE, &fault))?,
            None => configured(&config)?.ok_or(ChatError::NoTemplate)?,
        };
        let tokens = SpecialTokens::read(&config, read(MAP_FILE)?.as_deref());
        Self::new(source, tokens.map_err(|error| ChatError::Template(error.to_string()))?)
    }

    /// Checks that a template compiles.
    ///
    /// # Errors
    /// Where it is none, or too large, or its values could nest without a bound.
    pub fn new(source: String, tokens: SpecialTokens) -> Result<Self, ChatError> {
        if source.len() > MAX_TEMPLATE {
            let detail = format!("it has {} bytes; at most {MAX_TEMPLATE} are read", source.len());
            return Err(ChatError::Template(detail));
        }
        let invalid = |error: minijinja::Error| ChatError::Template(shortened(&error.to_string()));
        let source = without_generation(&source);
        let check = || match Program::compile(&source).map_err(invalid)?.unbounded_growth() {
            Some(fault) => Err(ChatError::Template(fault)),
            None => Ok(()),
        };
        caught_on_large_stack(check)
            .map_err(|panic| ChatError::Template(format!("the library panicked: {panic}")))??;
        let mut environment = environment();
        environment.add_function(ADD, add);
        let named = tokens.named.into_iter().map(|(role, token)| (role, Value::from(token)));
        let additional = (!tokens.additional.is_empty()).then(|| Value::from(tokens.additional));
        let tokens = named.chain(additional.map(|tokens| ("additional_special_tokens", tokens))).collect();
        Ok(Self { source, tokens, environment })
    }
}

fn in_file(file: &'static str, fault: &impl Display) -> ChatError {
    ChatError::File { file, fault: fault.to_string() }
}

fn config(bytes: Option<&[u8]>) -> Result<Map<String, Json>, ChatError> {
    let Some(bytes) = bytes else { return Ok(Map::new()) };
    serde_json::from_slice(bytes).map_err(|error| in_file(CONFIG_FILE, &error))
}

/// The template of the configuration: a text, or the one of several that is called `default`.
fn configured(config: &Map<String, Json>) -> Result<Option<String>, ChatError> {
    let fault = |fault: &str| in_file(CONFIG_FILE, &format!("key `{KEY}`: {fault}"));
    match config.get(KEY) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::String(source)) => Ok(Some(source.clone())),
        Some(Json::Array(templates)) => {
            let default = templates.iter().find(|template| template["name"] == DEFAULT);
            let source = default.and_then(|template| template["template"].as_str());
            source.map(|source| Some(source.to_owned())).ok_or_else(|| {
                fault("none of the templates has the `name` \"default\" and a `template` that is a text")
            })
        }
        Some(_) => Err(fault("expected a text or a list of objects with `name` and `template`")),
    }
}
