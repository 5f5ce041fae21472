//! The models that are configured, by name.

use super::entry::{Entry, Retry};
use super::token_counts::Counts;
use crate::methods::Scope;
use std::sync::Arc;

/// All configured models.
pub struct Registry {
    models: Vec<Arc<Entry>>,
    default: Option<Arc<Entry>>,
    pub(super) token_counts: Vec<Arc<Counts>>,
}

/// A request that names no model that is there.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No model has this id.
    #[error("model `{id}` is not configured; configured: {known}")]
    Unknown { id: String, known: String },
    /// Several models, no default, and the request names none.
    #[error("the request names no model and there is no default; configured: {known}")]
    NoDefault { known: String },
}

impl Registry {
    /// The models in the order of the configuration. With one model that one is the default.
    pub fn new(models: Vec<Arc<Entry>>, default: Option<&str>) -> Self {
        let named = default.and_then(|id| models.iter().find(|m| m.id() == id));
        let only = models.first().filter(|_| models.len() == 1);
        let default = named.or(only).cloned();
        Self { models, default, token_counts: Vec::new() }
    }

    /// Every model.
    pub fn all(&self) -> &[Arc<Entry>] {
        &self.models
    }

    /// Starts opening every model that is eager or at hand: a fault in its files shows at once, and so does its digest.
    /// What would have to be downloaded for a lazy one waits for its first request.
    pub fn begin_opening(&self) {
        for entry in &self.models {
            if entry.declared.eager || entry.declared.origin.repository().is_none() {
                entry.begin(Retry::AfterPause);
            }
        }
    }

    /// The model a request names, or the default.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] or [`RegistryError::NoDefault`].
    pub fn find(&self, id: Option<&str>) -> Result<Arc<Entry>, RegistryError> {
        let known = || self.models.iter().map(|m| m.id()).collect::<Vec<_>>().join(", ");
        match id {
            Some(id) => {
                let found = self.models.iter().find(|m| m.id() == id).cloned();
                found.ok_or_else(|| RegistryError::Unknown { id: id.to_owned(), known: known() })
            }
            None => self.default.clone().ok_or_else(|| RegistryError::NoDefault { known: known() }),
        }
    }

    /// What methods may refer to in a request for a model.
    pub fn scope<'a>(&'a self, model: Option<&'a Entry>, audit: bool, neighbors: bool) -> Scope<'a> {
        let models = self.models.iter().map(|model| model.id()).collect();
        let reference = model.and_then(|model| model.declared.reference.as_deref());
        Scope { models, reference, token_counts: self.token_counts_ids().collect(), audit, neighbors }
    }

    /// The id of the default model.
    pub fn default_id(&self) -> Option<&str> {
        self.default.as_ref().map(|m| m.id())
    }
}
