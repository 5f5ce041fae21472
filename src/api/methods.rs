//! `GET /v1/methods`: the catalogue of methods.

use super::problems::ListProblems;
use axum::Json;
use mia::methods::{Catalogue, catalogue};

/// List the methods.
///
/// Every method and every positional decay with its parameters, defaults and ranges.
#[utoipa::path(
    get,
    path = "/v1/methods",
    operation_id = "list_methods",
    tag = "service",
    responses((status = 200, description = "The methods and decays", body = Catalogue), ListProblems)
)]
pub async fn methods() -> Json<Catalogue> {
    Json(catalogue())
}
