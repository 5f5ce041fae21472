//! Where models are fetched from and kept, as the variables say that all of the Hub's tools read.

use super::HubError;
use hf_hub::Cache;
use std::path::PathBuf;

/// The Hub.
const ENDPOINT: &str = "https://huggingface.co";

/// What the variables say.
pub struct Environment {
    pub cache: Cache,
    pub endpoint: String,
    pub token: Option<String>,
    pub offline: bool,
}

impl Environment {
    pub fn read(vars: impl Fn(&str) -> Option<String>) -> Result<Self, HubError> {
        let vars = |name: &str| vars(name).filter(|value| !value.trim().is_empty());
        let home = home(vars);
        let cache = vars("HF_HUB_CACHE").map(PathBuf::from).or_else(|| Some(home.as_ref()?.join("hub")));
        let cache = Cache::new(cache.ok_or_else(|| fault("HF_HOME", "is unset, and so is HOME"))?);
        let token = vars("HF_TOKEN").or_else(|| Cache::new(home?.join("hub")).token());
        let offline = vars("HF_HUB_OFFLINE").is_some_and(|value| is_true(&value));
        Ok(Self {
            cache,
            endpoint: endpoint(vars("HF_ENDPOINT"))?,
            token: token.map(checked_token).transpose()?,
            offline,
        })
    }
}

/// The directory of all of the Hub's tools.
fn home(vars: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let cache =
        || vars("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(vars("HOME")?).join(".cache")));
    vars("HF_HOME").map(PathBuf::from).or_else(|| Some(cache()?.join("huggingface")))
}

fn endpoint(value: Option<String>) -> Result<String, HubError> {
    let Some(value) = value else { return Ok(ENDPOINT.to_owned()) };
    let endpoint = value.trim().trim_end_matches('/');
    let host = endpoint.strip_prefix("https://").or_else(|| endpoint.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !host.contains(['?', '#', '@', ' ']) => Ok(endpoint.to_owned()),
        _ => Err(fault("HF_ENDPOINT", "is not the address of a server, as https://huggingface.co")),
    }
}

/// A token can stand in a header; what is wrong with it is said without showing it.
fn checked_token(token: String) -> Result<String, HubError> {
    let token = token.trim();
    if token.bytes().all(|b| b.is_ascii_graphic()) {
        return Ok(token.to_owned());
    }
    Err(fault("HF_TOKEN", "or the token file holds characters that no token has"))
}

fn is_true(value: &str) -> bool {
    ["1", "true", "yes", "on"].iter().any(|word| value.trim().eq_ignore_ascii_case(word))
}

fn fault(variable: &'static str, problem: &str) -> HubError {
    HubError::Environment { variable, problem: problem.to_owned() }
}
