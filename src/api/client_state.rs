//! State of the routes, restricted to the client of a request.

use super::problem::Problem;
use super::request_note::RequestNote;
use super::state::ApiState;
use crate::access::Client;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use std::sync::Arc;

/// State of the router. No handler takes it; [`ClientState`] is the part that its client may see.
#[derive(Clone)]
pub struct RouterState(pub(super) ApiState);

/// State of a route, with the jobs, datasets and caches of the client alone.
pub struct ClientState(pub ApiState);

impl FromRequestParts<RouterState> for ClientState {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &RouterState) -> Result<Self, Problem> {
        let client = parts.extensions.get::<Arc<Client>>();
        let client = client.ok_or_else(|| Problem::internal("a request without a client reached a route"))?;
        let note = RequestNote::from_extensions(&parts.extensions);
        Ok(Self(ApiState { note, ..state.0.seen_by(client) }))
    }
}

impl ApiState {
    /// The same as a client sees it.
    fn seen_by(&self, client: &Arc<Client>) -> Self {
        Self {
            scorer: self.scorer.called_by(client.name()),
            jobs: self.jobs.seen_by(client.principal()),
            client: Arc::clone(client),
            ..self.clone()
        }
    }
}
