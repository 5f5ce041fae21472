//! The adapters of a model. Each is named `<model>:<adapter>` and scores like a model of its own, on the weights of its base.
//!
//! An adapter is small, so no room on a device is kept for it: its matrices are in main memory while it is open, and the
//! devices that hold its base keep copies of those that were used last. It is leased and loaded as its base.

use super::declaration::adapted_id;
use super::error::AdapterError;
use super::model::Model;
use futures::future::BoxFuture;
use indexmap::IndexMap;
use lm::models::files::ModelFiles;
use lm::models::lora::Adapter;
use std::fmt;
use std::sync::Arc;

/// An adapter as the settings, or whoever adds it, declare it.
#[derive(Clone, Debug)]
pub struct AdapterDeclaration {
    /// Its name among those of its base.
    pub name: String,
    pub source: AdapterSource,
}

#[derive(Clone)]
pub enum AdapterSource {
    Files(ModelFiles),
    /// They are fetched when the adapter is opened. It was tuned on the model of this digest, and on no other.
    Fetched {
        base_digest: String,
        fetch: FetchAdapter,
    },
}

/// Fetches the files of an adapter; what went wrong, in words, where it cannot.
pub type FetchAdapter = Arc<dyn Fn() -> BoxFuture<'static, Result<ModelFiles, String>> + Send + Sync>;

impl fmt::Debug for AdapterSource {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files(files) => formatter.debug_tuple("Files").field(files).finish(),
            Self::Fetched { base_digest, .. } => formatter.debug_tuple("Fetched").field(base_digest).finish(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct AdapterStatus {
    pub declaration: Arc<AdapterDeclaration>,
    pub adapter: Option<Arc<Adapter>>,
}

#[derive(Debug)]
struct DeclaredAdapter {
    declaration: Arc<AdapterDeclaration>,
    /// The base under it, once it is open; every request under the adapter has another handle of it.
    model: Option<Arc<Model>>,
}

/// The adapters of one model, in the order in which they were declared.
#[derive(Debug, Default)]
pub(crate) struct Adapters(IndexMap<String, DeclaredAdapter>);

impl Adapters {
    pub(super) fn add(&mut self, declaration: AdapterDeclaration) -> Result<(), AdapterError> {
        let name = declaration.name.clone();
        if self.0.contains_key(&name) {
            return Err(AdapterError::Taken(name));
        }
        self.0.insert(name, DeclaredAdapter { declaration: Arc::new(declaration), model: None });
        Ok(())
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Every adapter at a glance; `base` is the model that is open, if it is.
    pub(super) fn status(&self, base: Option<&Arc<Model>>) -> Vec<AdapterStatus> {
        let status = |(name, entry): (&String, &DeclaredAdapter)| {
            let model = base.and_then(|base| self.opened(name, base));
            let adapter = model.and_then(|model| model.adapted.as_ref()).map(|adapted| Arc::clone(&adapted.adapter));
            AdapterStatus { declaration: Arc::clone(&entry.declaration), adapter }
        };
        self.0.iter().map(status).collect()
    }

    pub(super) fn declaration(&self, base: &str, name: &str) -> Result<Arc<AdapterDeclaration>, AdapterError> {
        let declaration = self.0.get(name).map(|entry| Arc::clone(&entry.declaration));
        declaration.ok_or_else(|| {
            let known: Vec<&str> = self.names().collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            AdapterError::Unknown { base: base.to_owned(), name: name.to_owned(), known }
        })
    }

    /// The base under the adapter, where it is open and this is still the base that it was opened for.
    pub(super) fn opened(&self, name: &str, base: &Model) -> Option<&Arc<Model>> {
        let model = self.0.get(name)?.model.as_ref();
        model.filter(|model| model.adapted.as_ref().is_some_and(|adapted| adapted.base == base.identity))
    }

    pub(super) fn close(&mut self, base: &str, name: &str) -> Result<(), AdapterError> {
        self.declaration(base, name)?;
        match self.0.get_mut(name) {
            // The pool's own is one; every request under the adapter has another.
            Some(DeclaredAdapter { model: Some(model), .. }) if Arc::strong_count(model) > 1 => {
                Err(AdapterError::InUse(adapted_id(base, name)))
            }
            Some(entry) => {
                entry.model = None;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Closes an adapter that nobody uses, and forgets it; gives what was declared.
    pub(super) fn remove(&mut self, base: &str, name: &str) -> Result<Arc<AdapterDeclaration>, AdapterError> {
        self.close(base, name)?;
        let declaration = self.declaration(base, name)?;
        self.0.shift_remove(name);
        Ok(declaration)
    }

    /// Keeps what was opened for this base; where something is open for it already, that stays.
    pub(super) fn keep(&mut self, name: &str, base: &Model, model: Arc<Model>) -> Result<Arc<Model>, AdapterError> {
        self.declaration(base.id(), name)?;
        if let Some(open) = self.opened(name, base) {
            return Ok(Arc::clone(open));
        }
        if let Some(entry) = self.0.get_mut(name) {
            entry.model = Some(Arc::clone(&model));
        }
        Ok(model)
    }
}
