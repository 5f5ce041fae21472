//! Writes answers in JSON, away from the threads that serve connections: they may have megabytes.

use super::problem::Problem;
use super::state::ApiState;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The value as a JSON response of status 200.
///
/// # Errors
/// Where the value cannot be written, which is a fault of the service.
pub async fn json<T: Serialize + Send + 'static>(state: &ApiState, value: T) -> Result<Response, Problem> {
    let written = state.scorer.workers().run(move || serde_json::to_vec(&value)).await?;
    let bytes = written.map_err(Problem::internal)?;
    Ok(([(header::CONTENT_TYPE, "application/json")], bytes).into_response())
}
