//! The routes, and the OpenAPI document that they make.

use super::client_state::RouterState;
use super::job_routes::job_routes;
use super::operations::operations;
use super::state::ApiState;
use super::{
    audit_comparison, audits, datasets, docs, health, methods, middleware, models, plain_schemas, plans, problems,
    root, route_rules, score, security, token_stats,
};
use crate::audits::{AuditKind, CalibrationKind, TrialJob};
use crate::finetunes::FinetuneKind;
use crate::memorization::MemorizationKind;
use crate::telemetry;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use docs::ServedDocument;
use std::sync::{Arc, LazyLock};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| document().to_json().unwrap_or_default());

/// All routes, ready to be served.
pub fn router(state: ApiState) -> Router {
    let (router, document) = routes().split_for_parts();
    telemetry::zero_routes(successes(&document));
    let (rules, state) = (route_rules::rules(&document), RouterState(state));
    let router = router.layer(Extension(ServedDocument(&DOCUMENT)));
    let router = router.layer(from_fn_with_state(Arc::clone(&rules), route_rules::keep));
    let router = router.route("/docs/", get(docs::file)).route("/docs/{*file}", get(docs::file));
    middleware::around(router, &state, rules).with_state(state)
}

/// The one route of the address that metrics have for themselves.
pub fn metrics_router(state: ApiState) -> Router {
    let state = ApiState { metrics_apart: false, ..state };
    Router::new().route("/metrics", get(health::metrics_apart)).with_state(RouterState(state))
}

/// The OpenAPI document of all routes.
pub fn document() -> OpenApi {
    plain_schemas::simplified(security::secured(routes().into_openapi()))
}

pub(super) fn routes() -> OpenApiRouter<RouterState> {
    OpenApiRouter::with_openapi(frame())
        .routes(routes!(score::score))
        .routes(routes!(token_stats::token_stats))
        .merge(job_routes::<AuditKind>())
        .routes(routes!(audits::scores))
        .routes(routes!(audit_comparison::compare))
        .routes(routes!(plans::submit))
        .merge(job_routes::<CalibrationKind>())
        .merge(job_routes::<TrialJob>())
        .merge(job_routes::<FinetuneKind>())
        .merge(job_routes::<MemorizationKind>())
        .routes(routes!(datasets::upload, datasets::list))
        .routes(routes!(datasets::get, datasets::delete))
        .routes(routes!(models::models))
        .routes(routes!(models::load))
        .routes(routes!(models::unload))
        .routes(routes!(models::remove_adapter))
        .routes(routes!(methods::methods))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(root::root))
        .routes(routes!(docs::openapi))
        .routes(routes!(docs::page))
}

/// The document without routes.
fn frame() -> OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(
        info(
            title = "pdr-audit",
            description = "Tells whether a text was in a language model's pre-training data. Errors are problems (RFC 9457). Every \
                response carries the request's id in `x-request-id`; a client may choose it."
        ),
        tags(
            (name = "scoring", description = "Scores while the client waits"),
            (name = "audits", description = "Labelled samples in, a report out"),
            (name = "calibrations", description = "Known non-members in, p-values of other texts out"),
            (name = "tests", description = "Texts and comparable ones that the model cannot have seen in, a p-value out"),
            (name = "finetunes", description = "Texts that a model has not seen in, an adapter out"),
            (name = "memorization", description = "Shares of texts that a model completes word by word"),
            (name = "datasets", description = "Samples that several audits can use"),
            (name = "service", description = "Models and methods that are served"),
            (name = "operation", description = "Health, metrics and this document")
        )
    )]
    struct Frame;

    let mut document = <Frame as utoipa::OpenApi>::openapi();
    document.components.get_or_insert_default().schemas.extend(problems::schemas());
    document
}

/// Method, path and status of success of every route.
fn successes(document: &OpenApi) -> impl Iterator<Item = (&str, &str, u16)> {
    operations(document).filter_map(|(method, path, operation)| {
        let mut statuses = operation.responses.responses.keys().filter_map(|status| status.parse().ok());
        statuses.find(|status| (200..300).contains(status)).map(|status| (method, path, status))
    })
}
