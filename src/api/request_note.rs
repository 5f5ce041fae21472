//! Facts about a request, for the log and the record.

use crate::access::{Client, RecordedWork};
use axum::http::Extensions;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Facts about a request, noted as soon as they are known, since a client may disconnect before the answer. Cheap to clone;
/// clones share the same note.
#[derive(Clone, Debug, Default)]
pub struct RequestNote(Arc<Mutex<NotedRequest>>);

/// The noted facts.
#[derive(Clone, Debug, Default)]
pub struct NotedRequest {
    /// The client, once its key is known.
    pub client: Option<Arc<Client>>,
    pub work: RecordedWork,
}

impl RequestNote {
    /// The note of the request with these extensions; one that nobody reads where it has none.
    #[must_use]
    pub fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Notes the client.
    pub fn set_client(&self, client: &Arc<Client>) {
        self.lock().client = Some(Arc::clone(client));
    }

    pub fn update(&self, change: impl FnOnce(&mut RecordedWork)) {
        change(&mut self.lock().work);
    }

    /// Returns the facts noted so far.
    #[must_use]
    pub fn read(&self) -> NotedRequest {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, NotedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
