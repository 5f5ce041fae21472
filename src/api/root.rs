//! `GET /`: where to go from here.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// What this is, and where to go.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServiceLinks {
    /// Always `pdr-audit`.
    #[schema(examples("pdr-audit"))]
    service: &'static str,
    /// The version of the program.
    version: &'static str,
    /// The documentation as a page, with a form for every route.
    #[schema(examples("/docs"))]
    documentation: &'static str,
    /// The OpenAPI document.
    #[schema(examples("/openapi.json"))]
    openapi: &'static str,
    /// The models and where each stands.
    #[schema(examples("/v1/models"))]
    models: &'static str,
    /// The methods and their parameters.
    #[schema(examples("/v1/methods"))]
    methods: &'static str,
    /// Whether requests are served.
    #[schema(examples("/readyz"))]
    ready: &'static str,
}

/// Where to go.
#[utoipa::path(
    get,
    path = "/",
    tag = "operation",
    responses((status = 200, description = "What this is, and the paths of its parts", body = ServiceLinks))
)]
pub async fn root() -> Json<ServiceLinks> {
    Json(ServiceLinks {
        service: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        documentation: "/docs",
        openapi: "/openapi.json",
        models: "/v1/models",
        methods: "/v1/methods",
        ready: "/readyz",
    })
}
