//! The routes, and the OpenAPI document that they make.

use super::jobs::{JobDocument, JobKinds};
use super::problem::responses;
use super::route_rules::{self, operations};
use super::state::{ApiState, RouterState};
use super::{
    audit_comparison, audits, dashboard, datasets, docs, health, memorization_map, middleware, models, plain_schemas,
    plans, score, token_stats,
};
use crate::telemetry;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum::{Extension, Router};
use docs::ServedDocument;
use std::sync::{Arc, LazyLock};
use utoipa::openapi::OpenApi;
use utoipa::openapi::tag::TagBuilder;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// All routes, with those of these kinds of job, ready to be served.
pub fn router(state: ApiState, kinds: &JobKinds) -> Router {
    let documented = kinds.clone();
    let served = LazyLock::new(Box::new(move || document(&documented).to_json().unwrap_or_default()) as Box<_>);
    let (router, document) = routes(kinds).split_for_parts();
    telemetry::zero_routes(successes(&document));
    let (rules, state) = (route_rules::rules(&document), RouterState(state));
    let router = router.layer(Extension(ServedDocument(Arc::new(served))));
    let router = router.layer(from_fn_with_state(Arc::clone(&rules), route_rules::keep));
    let router = router.route("/docs/", get(docs::file)).route("/docs/{*file}", get(docs::file));
    let router = router.route("/dashboard/app.js", get(dashboard::script));
    let router = router.route("/dashboard/app.css", get(dashboard::style));
    middleware::around(router, &state, rules).with_state(state)
}

/// The one route of the address that metrics have for themselves.
pub fn metrics_router(state: ApiState) -> Router {
    let state = ApiState { metrics_apart: false, ..state };
    Router::new().route("/metrics", get(health::metrics_apart)).with_state(RouterState(state))
}

/// The OpenAPI document of all routes.
pub fn document(kinds: &JobKinds) -> OpenApi {
    plain_schemas::simplified(route_rules::secured(routes(kinds).into_openapi()))
}

pub(super) fn routes(kinds: &JobKinds) -> OpenApiRouter<RouterState> {
    let router = OpenApiRouter::with_openapi(frame(kinds))
        .routes(routes!(score::score))
        .routes(routes!(token_stats::token_stats))
        .routes(routes!(audits::scores))
        .routes(routes!(memorization_map::map))
        .routes(routes!(audit_comparison::compare))
        .routes(routes!(plans::submit))
        .routes(routes!(datasets::upload, datasets::list))
        .routes(routes!(datasets::get, datasets::delete))
        .routes(routes!(models::models))
        .routes(routes!(models::load))
        .routes(routes!(models::unload))
        .routes(routes!(models::remove_adapter))
        .routes(routes!(models::methods))
        .routes(routes!(health::livez))
        .routes(routes!(health::readyz))
        .routes(routes!(health::metrics))
        .routes(routes!(dashboard::root))
        .routes(routes!(docs::openapi))
        .routes(routes!(docs::page));
    kinds.iter().fold(router, |router, kind| router.merge((kind.routes)()))
}

/// The document without routes.
fn frame(kinds: &JobKinds) -> OpenApi {
    #[derive(utoipa::OpenApi)]
    #[openapi(
        info(
            title = "pdr-audit",
            description = "Tells whether a text was in a language model's pre-training data. Errors are problems (RFC 9457). Every \
                response carries the request's id in `x-request-id`; a client may choose it."
        ),
        tags(
            (name = "scoring", description = "Scores while the client waits"),
            (name = "datasets", description = "Samples that several audits can use"),
            (name = "service", description = "Models and methods that are served"),
            (name = "operation", description = "Health, metrics and this document")
        )
    )]
    struct Frame;

    let mut document = <Frame as utoipa::OpenApi>::openapi();
    let tag =
        |JobDocument { segment, about, .. }: JobDocument| TagBuilder::new().name(segment).description(Some(about));
    // Behind `scoring`.
    document.tags.get_or_insert_default().splice(1..1, kinds.iter().map(|kind| tag(kind.document).build()));
    document.components.get_or_insert_default().schemas.extend(responses::schemas());
    document
}

/// Method, path and status of success of every route.
fn successes(document: &OpenApi) -> impl Iterator<Item = (&str, &str, u16)> {
    operations(document).filter_map(|(method, path, operation)| {
        let mut statuses = operation.responses.responses.keys().filter_map(|status| status.parse().ok());
        statuses.find(|status| (200..300).contains(status)).map(|status| (method, path, status))
    })
}
