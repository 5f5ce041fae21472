//! Cross-site requests that a web page makes without the visitor's knowledge: they are refused before any other check.

use super::accepted_origins::fault;
use super::client_state::RouterState;
use super::problem::{Kind, Problem};
use axum::extract::{Request, State};
use axum::http::header;
use axum::http::uri::Authority;
use axum::middleware::Next;
use axum::response::Response;

/// Refuses requests of foreign pages that change something, and of hosts that are not this machine where it is to be this machine.
///
/// # Errors
/// 403.
pub async fn keep_to(
    State(RouterState(state)): State<RouterState>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let host = request.uri().authority().map(Authority::as_str);
    let host = host.or_else(|| request.headers().get(header::HOST).and_then(|host| host.to_str().ok()));
    match fault(&state.origins, request.method(), request.headers(), host) {
        Some(detail) => Err(Problem::new(Kind::Forbidden, detail)),
        None => Ok(next.run(request).await),
    }
}
