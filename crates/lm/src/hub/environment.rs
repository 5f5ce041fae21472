//! The Hub's configuration, from the environment variables that all tools of the Hub read.

use super::HubError;
use std::path::{Path, PathBuf};

/// The default address of the Hub.
const ENDPOINT: &str = "https://huggingface.co";

/// The values of the environment variables.
pub struct Environment {
    pub cache: PathBuf,
    pub endpoint: String,
    pub token: Option<String>,
    pub offline: bool,
}

impl Environment {
    pub fn read(vars: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        let vars = |name: &str| vars(name).filter(|value| !value.trim().is_empty());
        let home = home(vars);
        let cache = vars("HF_HUB_CACHE").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join("hub")));
        let cache = cache.ok_or_else(|| invalid("HF_HOME", "is not set, and neither is HOME"))?;
        let token = vars("HF_TOKEN").or_else(|| token_file(&home?));
        let offline = vars("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value));
        Ok(Self {
            cache,
            endpoint: endpoint(vars("HF_ENDPOINT"))?,
            token: token.map(checked_token).transpose()?,
            offline,
        })
    }
}

/// The directory that all tools of the Hub share.
fn home(vars: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let cache =
        || vars("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(vars("HOME")?).join(".cache")));
    vars("HF_HOME").map(PathBuf::from).or_else(|| Some(cache()?.join("huggingface")))
}

/// The token that `hf auth login` has saved.
fn token_file(home: &Path) -> Option<String> {
    let token = std::fs::read_to_string(home.join("token")).ok()?;
    Some(token).filter(|token| !token.trim().is_empty())
}

fn endpoint(value: Option<String>) -> Result<String, HubError> {
    let Some(value) = value else { return Ok(ENDPOINT.to_owned()) };
    let endpoint = value.trim().trim_end_matches('/');
    let host = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['?', '#', '@', ' ']) => Ok(endpoint.to_owned()),
        _ => Err(invalid("HF_ENDPOINT", "is not the address of a server, such as https://huggingface.co")),
    }
}

/// A token must be usable in a header. The error message does not contain the token.
fn checked_token(token: String) -> Result<String, HubError> {
    let token = token.trim();
    if token.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(token.to_owned());
    }
    Err(invalid("HF_TOKEN", "or the token file contains characters that are not allowed in a token"))
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

fn invalid(variable: &'static str, problem: &str) -> HubError {
    HubError::Environment { variable, problem: problem.to_owned() }
}
