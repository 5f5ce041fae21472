//! What is known of a request, for the log and the record.

use crate::access::{Client, RecordedWork};
use axum::http::Extensions;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is known of a request, noted as soon as it is known: a client may go away before the answer. Cheap to clone; clones are the
/// same one.
#[derive(Clone, Debug, Default)]
pub struct RequestNote(Arc<Mutex<NotedRequest>>);

/// What was noted.
#[derive(Clone, Debug, Default)]
pub struct NotedRequest {
    /// Who asks, once its key is known.
    pub client: Option<Arc<Client>>,
    pub work: RecordedWork,
}

impl RequestNote {
    /// The note of the request with these extensions; one that nobody reads where it has none.
    #[must_use]
    pub fn from_extensions(extensions: &Extensions) -> Self {
        extensions.get().cloned().unwrap_or_default()
    }

    /// Notes who asks.
    pub fn set_client(&self, client: &Arc<Client>) {
        self.lock().client = Some(Arc::clone(client));
    }

    pub fn update(&self, change: impl FnOnce(&mut RecordedWork)) {
        change(&mut self.lock().work);
    }

    /// What was noted so far.
    #[must_use]
    pub fn read(&self) -> NotedRequest {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, NotedRequest> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
