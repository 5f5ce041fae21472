//! `GET /`: where to go from here.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

/// Name and paths of the service.
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
    /// Reports readiness.
    #[schema(examples("/readyz"))]
    ready: &'static str,
}

/// Paths of the service.
#[utoipa::path(
    get,
    path = "/",
    tag = "operation",
    responses((status = 200, description = "Name and paths of the service", body = ServiceLinks))
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
