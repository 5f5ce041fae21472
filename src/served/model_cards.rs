//! What servers with OpenAI's routes say of themselves: the answers of `GET /v1/models` and of vLLM's `GET /version`.

use super::server::{excerpt, unreached};
use lm::models::ModelError;
use serde::Deserialize;

/// The models of a server: a list, or as most servers write it an object with one.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum ModelCards {
    Object { data: Vec<ModelCard> },
    List(Vec<ModelCard>),
}

#[derive(Deserialize)]
pub struct ModelCard {
    pub id: String,
    /// Where its files come from.
    pub root: Option<String>,
    /// Maximum number of tokens of a prompt and of what is generated.
    pub max_model_len: Option<usize>,
}

/// The answer of `GET /version`.
#[derive(Deserialize)]
pub struct ServerVersion {
    pub version: String,
}

impl ModelCards {
    /// Returns the card of the model of this name.
    ///
    /// # Errors
    /// If the server does not serve it.
    pub fn find(self, name: &str) -> Result<ModelCard, ModelError> {
        let (Self::Object { data: cards } | Self::List(cards)) = self;
        let names: Vec<&str> = cards.iter().map(|card| card.id.as_str()).collect();
        let names = excerpt(&names.join(", "));
        let missing = || unreached(format!("it does not serve `{name}`; it serves {names}"));
        cards.into_iter().find(|card| card.id == name).ok_or_else(missing)
    }
}
