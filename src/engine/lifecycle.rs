//! Models coming and going by hand.
//!
//! Load and unload may race. Of the two the unload wins, whichever came first: a load that is asked for while the model
//! drains is refused, and one that an unload overtakes ends with [`LoadError::Unloading`], though what had begun is
//! finished first. So the outcome does not depend on the moment.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::oneshot;

use super::{Engine, LoadError, ModelSource, UnknownModel, UnloadError};

impl Engine {
    /// Tells the engine what a declared model is, so that it can be loaded. An eager one is loaded now. For a model that
    /// is loaded, is being loaded or has work, this changes nothing. Says whether the engine knows the model as this.
    ///
    /// # Errors
    /// [`UnknownModel`] where no model of this id is declared.
    pub fn register(&self, id: &str, source: ModelSource) -> Result<bool, UnknownModel> {
        let shared = &self.0.shared;
        let model = shared.find(id)?;
        let identity = Arc::clone(&source.identity);
        shared.change(|books| {
            if books.is_idle(model) && !shared.gate.is_closed() {
                books.models[model].open(source);
            }
        });
        let known = shared.with_books(|books| books.models[model].source().map(|known| known.identity == identity));
        // An engine that ends takes nothing in any more, and nobody will miss it.
        Ok(known.unwrap_or_else(|| shared.gate.is_closed()))
    }

    /// Notes that the files of a declared model could not be opened. [`Engine::register`] heals it. For a model that is
    /// loaded, is being loaded or has work, this changes nothing.
    ///
    /// # Errors
    /// [`UnknownModel`] where no model of this id is declared.
    pub fn opening_failed(&self, id: &str, reason: impl Into<String>) -> Result<(), UnknownModel> {
        let (shared, reason) = (&self.0.shared, reason.into());
        let model = shared.find(id)?;
        tracing::error!(model = id, reason, "model cannot be opened");
        shared.board.note(|facts| facts.last_error = Some((Instant::now(), reason.clone())));
        shared.change(|books| {
            if books.is_idle(model) {
                books.models[model].fail_to_open(reason);
            }
        });
        Ok(())
    }

    /// Loads a model to all its devices and waits for that; at once where it is there already. All who ask at a time
    /// wait for the same attempt. It is made even where one has just failed. Dropping the future does not stop it.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub async fn load(&self, id: &str) -> Result<(), LoadError> {
        let shared = &self.0.shared;
        let model = shared.find(id)?;
        let (waiter, loaded) = oneshot::channel();
        shared.change(|books| {
            let books = &mut books.models[model];
            if shared.gate.is_closed() {
                return Err(LoadError::Ended(shared.why_it_ended()));
            }
            if books.is_draining() {
                return Err(LoadError::Unloading);
            }
            if books.source().is_none() {
                return Err(LoadError::NotOpened(id.to_owned()));
            }
            books.order(waiter);
            Ok(())
        })?;
        loaded.await.unwrap_or_else(|_| Err(LoadError::Ended(shared.why_it_ended())))
    }

    /// Refuses new requests for a model, finishes those that were admitted, drops it from all its devices and waits for
    /// that. At once where it is not loaded. A later request loads it again, also an eager one. Dropping the future
    /// does not stop it.
    ///
    /// # Errors
    /// See [`UnloadError`].
    pub async fn unload(&self, id: &str) -> Result<(), UnloadError> {
        let shared = &self.0.shared;
        let model = shared.find(id)?;
        let (waiter, unloaded) = oneshot::channel();
        shared.change(|books| {
            if shared.gate.is_closed() {
                return Err(UnloadError::Ended(shared.why_it_ended()));
            }
            books.unload(model, waiter);
            Ok(())
        })?;
        unloaded.await.map_err(|_| UnloadError::Ended(shared.why_it_ended()))
    }
}
