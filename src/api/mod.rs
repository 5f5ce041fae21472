//! The HTTP interface: axum routes over the scorer and the audits.
//!
//! Invariants:
//!
//! - a route and its part of the OpenAPI document are the same line;
//! - every failure is a problem (see `problem.rs`), and no other file knows its status;
//! - no handler spawns work for `/v1/score`: when the client goes away, the handler's future is dropped and with it the
//!   work;
//! - what may take long on the CPU (reading and writing megabytes of JSON) runs on the scorer's workers.

mod accept;
mod answer;
mod audit_comparison;
mod audit_lines;
mod audit_parquet;
mod audit_request;
mod audit_scores;
mod audit_view;
mod audits;
mod authentication;
mod body_budget;
mod calibration_request;
mod calibration_view;
mod calibrations;
mod check;
mod client_state;
mod dataset_check;
mod datasets;
mod docs;
mod extract;
mod finetune_request;
mod finetune_view;
mod finetunes;
mod health;
mod in_flight;
mod inputs;
mod job_events;
mod job_id;
mod job_list;
mod job_problems;
mod job_request;
mod memorization;
mod memorization_request;
mod memorization_view;
mod methods;
mod middleware;
mod model_view;
mod models;
mod origin;
mod page_query;
mod plain_schemas;
mod prefer;
mod problem;
mod problem_body;
mod problems;
mod request_note;
mod root;
mod route_rules;
mod sample_line;
mod score;
mod score_calibration;
mod score_request;
mod security;
mod stages;
mod token_stats;
mod token_stats_file;
mod trace_context;
mod trial_request;
mod trial_texts;
mod trial_view;
mod trials;
mod upload;

use crate::access::{AccessRecord, Client, Keyring};
use crate::audits::{Audits, Calibrations, Trials};
use crate::config::{LimitSettings, Settings};
use crate::finetunes::Finetunes;
use crate::memorization::Memorizations;
use crate::scorer::Scorer;
use crate::telemetry::{self, MetricsExporter};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use body_budget::BodyBudget;
use client_state::RouterState;
use origin::{AcceptedHosts, AcceptedOrigins};
use request_note::RequestNote;
use score_calibration::CalibrationCache;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use utoipa::openapi::OpenApi;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Uploads that are read at once; each has a thread.
const MOST_UPLOADS: usize = 32;

/// What the routes work with; cheap to clone.
#[derive(Clone)]
pub struct ApiState {
    /// Scores texts; leads to the models and the engine as well.
    pub scorer: Scorer,
    /// The audits, over the same scorer.
    pub audits: Audits,
    /// The calibrations, over the same scorer.
    pub calibrations: Calibrations,
    /// Those that were used lately.
    pub calibration_cache: CalibrationCache,
    /// The tests that need no threshold, over the same scorer.
    pub trials: Trials,
    /// The fine-tunes of its models.
    pub finetunes: Finetunes,
    /// The looks at what its models have memorized.
    pub memorizations: Memorizations,
    /// What one request may ask for. `limits.text` is kept by the scorer.
    pub limits: LimitSettings,
    /// The largest request body, in bytes: `server.body_limit`.
    pub body_limit: u64,
    /// What the bodies that are being read may take together.
    pub bodies: BodyBudget,
    /// How long a request may take, from its arrival: `server.request_timeout`.
    pub request_timeout: Duration,
    /// How long a client may take nothing of an answer: `server.write_timeout`.
    pub write_timeout: Duration,
    /// How long a forward pass may take before the process counts as hung: `engine.forward_timeout`.
    pub forward_timeout: Duration,
    /// What `/metrics` shows.
    pub metrics: MetricsExporter,
    /// Cancelled when the service is about to end: it is not ready from then on, though requests are served.
    pub draining: CancellationToken,
    /// The keys that are accepted; none where no key is needed.
    pub keyring: Option<Keyring>,
    /// Pages and hosts that are accepted.
    pub origins: AcceptedOrigins,
    /// Whether `/metrics` is served on an address of its own.
    pub metrics_apart: bool,
    /// Where each request is written; none for no record.
    pub record: Option<AccessRecord>,
    pub client: Arc<Client>,
    /// What is known of the request.
    pub note: RequestNote,
    /// Uploads that may be read at once.
    pub uploads: Arc<Semaphore>,
}

/// The jobs of every kind, as routes submit them and look at them; cheap to clone.
#[derive(Clone)]
pub struct RoutedJobs {
    pub audits: Audits,
    pub calibrations: Calibrations,
    pub trials: Trials,
    pub finetunes: Finetunes,
    pub memorizations: Memorizations,
}

impl ApiState {
    /// The parts under the limits of the settings.
    pub fn new(scorer: Scorer, jobs: RoutedJobs, metrics: MetricsExporter, settings: &Settings) -> Self {
        let Settings { server, limits, .. } = settings;
        let RoutedJobs { audits, calibrations, trials, finetunes, memorizations } = jobs;
        Self {
            scorer,
            audits,
            calibrations,
            calibration_cache: CalibrationCache::default(),
            trials,
            finetunes,
            memorizations,
            limits: limits.clone(),
            body_limit: server.body_limit.as_u64(),
            bodies: BodyBudget::new(server.body_memory.map(|size| size.as_u64()), server.body_limit.as_u64()),
            request_timeout: server.request_timeout,
            write_timeout: server.write_timeout,
            forward_timeout: settings.engine.forward_timeout,
            metrics,
            draining: CancellationToken::new(),
            keyring: None,
            origins: AcceptedOrigins {
                pages: server.cors.clone(),
                hosts: match (&settings.auth.keys, server.is_local()) {
                    (Some(_), _) => AcceptedHosts::All,
                    (None, true) => AcceptedHosts::Local,
                    (None, false) => AcceptedHosts::Private,
                },
                names: server.hosts.clone(),
            },
            metrics_apart: server.metrics.is_some() || settings.auth.keys.is_some(),
            record: None,
            client: Arc::new(Client::without_keys()),
            note: RequestNote::default(),
            uploads: Arc::new(Semaphore::new(MOST_UPLOADS)),
        }
    }

    /// The same with keys, which every request has to have from then on.
    #[must_use]
    pub fn with_keys(self, keyring: Keyring) -> Self {
        Self { keyring: Some(keyring), ..self }
    }

    /// The same, where each request is written to a record.
    #[must_use]
    pub fn with_record(self, record: AccessRecord) -> Self {
        Self { record: Some(record), ..self }
    }
}

/// All routes, ready to be served.
pub fn router(state: ApiState) -> Router {
    let (router, document) = routes().split_for_parts();
    telemetry::zero_routes(successes(&document));
    let (rules, state) = (route_rules::rules(&document), RouterState(state));
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

fn routes() -> OpenApiRouter<RouterState> {
    OpenApiRouter::with_openapi(frame())
        .routes(routes!(score::score))
        .routes(routes!(token_stats::token_stats))
        .routes(routes!(audits::submit, audits::list))
        .routes(routes!(audits::get, audits::delete))
        .routes(routes!(audits::scores))
        .routes(routes!(audits::cancel))
        .routes(routes!(audits::events))
        .routes(routes!(audit_comparison::compare))
        .routes(routes!(calibrations::submit, calibrations::list))
        .routes(routes!(calibrations::get, calibrations::delete))
        .routes(routes!(calibrations::cancel))
        .routes(routes!(calibrations::events))
        .routes(routes!(trials::submit, trials::list))
        .routes(routes!(trials::get, trials::delete))
        .routes(routes!(trials::cancel))
        .routes(routes!(trials::events))
        .routes(routes!(finetunes::submit, finetunes::list))
        .routes(routes!(finetunes::get, finetunes::delete))
        .routes(routes!(finetunes::cancel))
        .routes(routes!(finetunes::events))
        .routes(routes!(memorization::submit, memorization::list))
        .routes(routes!(memorization::get, memorization::delete))
        .routes(routes!(memorization::cancel))
        .routes(routes!(memorization::events))
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
            (name = "memorization", description = "How much of texts a model completes word by word"),
            (name = "datasets", description = "Samples that several audits can use"),
            (name = "service", description = "What is served"),
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
    document.paths.paths.iter().flat_map(|(path, item)| {
        let operations = methods_of(item).into_iter().filter_map(|(method, operation)| Some((method, operation?)));
        operations.filter_map(move |(method, operation)| {
            let mut statuses = operation.responses.responses.keys().filter_map(|status| status.parse().ok());
            statuses.find(|status| (200..300).contains(status)).map(|status| (method, path.as_str(), status))
        })
    })
}

fn methods_of(item: &PathItem) -> [(&str, Option<&Operation>); 3] {
    [("GET", item.get.as_ref()), ("POST", item.post.as_ref()), ("DELETE", item.delete.as_ref())]
}
