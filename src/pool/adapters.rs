//! Adapters coming and going, and their files.

use std::sync::Arc;

use super::adapter::{AdapterDeclaration, AdapterSource};
use super::adapter_id::adapted_id;
use super::error::{AdapterError, UnknownModel};
use super::handle::Pool;
use super::model::Model;
use lm::models::ModelError;
use lm::models::checkpoint::Checkpoint;
use lm::models::files::ModelFiles;

impl Pool {
    /// Declares an adapter of a model. Its files are closed until somebody needs them.
    pub fn add_adapter(&self, base: &str, declaration: AdapterDeclaration) -> Result<(), AdapterError> {
        self.change(|models| models.get_mut(base).ok_or_else(|| unknown(base))?.adapters.add(declaration))
    }

    /// Closes an adapter: its matrices leave the main memory now, and a device with its next batch. The next request opens it
    /// again.
    pub fn close_adapter(&self, base: &str, name: &str) -> Result<(), AdapterError> {
        self.change(|models| models.get_mut(base).ok_or_else(|| unknown(base))?.adapters.close(base, name))
    }

    /// Closes an adapter, and then there is no such adapter any more; gives what was declared.
    pub fn remove_adapter(&self, base: &str, name: &str) -> Result<Arc<AdapterDeclaration>, AdapterError> {
        self.change(|models| models.get_mut(base).ok_or_else(|| unknown(base))?.adapters.remove(base, name))
    }

    /// The base under an adapter, whose files are opened now if they were not. One adapter is opened at a time, so all who ask
    /// meanwhile get the same one.
    pub(super) async fn open_adapter(&self, base: Arc<Model>, name: &str) -> Result<Arc<Model>, AdapterError> {
        let _turn = self.adapter_turn().lock().await;
        let source = {
            let models = self.lock();
            let adapters = &models.get(base.id()).ok_or_else(|| unknown(base.id()))?.adapters;
            let declaration = adapters.declaration(base.id(), name)?;
            if let Some(open) = adapters.opened(name, &base) {
                return Ok(Arc::clone(open));
            }
            declaration.source.clone()
        };
        let id = adapted_id(base.id(), name);
        let fault = |reason: String| AdapterError::Files { id: id.clone(), reason };
        let files = match source {
            AdapterSource::Files(files) => files,
            AdapterSource::Fetched { base_digest, .. } if base_digest != base.info.digest => {
                return Err(fault("it was tuned on other files of the base than those that are open now".to_owned()));
            }
            AdapterSource::Fetched { fetch, .. } => fetch().await.map_err(fault)?,
        };
        let (under, owned) = (Arc::clone(&base), name.to_owned());
        let opened = tokio::task::spawn_blocking(move || opened(&under, &owned, &files)).await;
        let opened = opened.map_err(|panic| AdapterError::Panicked(panic.to_string()))?;
        let model = opened.map_err(|error| fault(error.to_string()))?;
        self.change(|models| {
            let lifecycle = models.get_mut(base.id()).ok_or_else(|| unknown(base.id()))?;
            lifecycle.adapters.keep(name, &base, Arc::new(model))
        })
    }
}

/// The base under the adapter in these files. The base's own files must still be those that it was opened from, and those of
/// the adapter may not change meanwhile.
fn opened(base: &Model, name: &str, files: &ModelFiles) -> Result<Model, ModelError> {
    let stamp = files.stamp()?;
    let here = base.local()?;
    let read = || Checkpoint::open(&here.files)?.adapter(files);
    let adapter = here.files.read_unchanged(&here.stamp, || files.read_unchanged(&stamp, read))?;
    Ok(base.under(name, adapter))
}

fn unknown(base: &str) -> AdapterError {
    AdapterError::UnknownModel(UnknownModel(base.to_owned()))
}
