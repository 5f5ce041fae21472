//! `/livez`, `/readyz` and `/metrics`: read from facts, never asked through the queue.

use super::model_view::StateName;
use super::problem::responses::{LiveProblems, MetricsProblems, ReadyProblems};
use super::problem::{Kind, Problem};
use super::state::{ApiState, ClientState, RouterState};
use crate::pool::ModelStatus;
use crate::telemetry::names;
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use std::time::Instant;
use utoipa::ToSchema;

/// That the process answers.
#[derive(Debug, Serialize, ToSchema)]
pub struct Liveness {
    /// Always `alive`.
    #[schema(examples("alive"))]
    status: &'static str,
}

/// The facts that readiness follows from.
#[derive(Debug, Serialize, ToSchema)]
pub struct Readiness {
    /// True if requests are served as configured.
    ready: bool,
    /// True if the service is shutting down.
    draining: bool,
    device: DeviceFacts,
    models: Vec<ModelFact>,
    /// True if the access record is written; absent if none is kept. It does not count for `ready`: texts are scored, and changes that take
    /// the scope `admin` are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    record_is_written: Option<bool>,
}

/// State of the device.
#[derive(Debug, Serialize, ToSchema)]
pub struct DeviceFacts {
    /// True if its thread runs.
    alive: bool,
    /// True if it failed permanently.
    lost: bool,
    /// Seconds that the forward pass in flight has taken so far; null while the device is idle.
    busy_seconds: Option<f64>,
    /// Seconds since a forward pass last succeeded; null where none has.
    last_success_seconds: Option<f64>,
}

/// State of one model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelFact {
    id: String,
    state: StateName,
    /// True if readiness waits for it.
    eager: bool,
}

impl From<&ModelStatus> for ModelFact {
    fn from(status: &ModelStatus) -> Self {
        let declaration = &status.declaration;
        Self { id: declaration.id.clone(), state: (&status.state).into(), eager: declaration.eager }
    }
}

/// Reports liveness.
///
/// A forward pass that makes no progress for longer than `engine.forward_timeout` hangs: nothing but another process helps then. Only a
/// pass through layers that are read from disk tells of its progress.
#[utoipa::path(
    get,
    path = "/livez",
    tag = "operation",
    responses((status = 200, description = "The process runs", body = Liveness), LiveProblems)
)]
pub async fn livez(ClientState(state): ClientState) -> Result<Json<Liveness>, Problem> {
    let busy = state.scorer.engine().status().busy_without_progress_since().map(|since| since.elapsed());
    match busy.filter(|busy| *busy > state.forward_timeout) {
        None => Ok(Json(Liveness { status: "alive" })),
        Some(busy) => {
            let (seconds, limit) = (busy.as_secs(), state.forward_timeout.as_secs());
            let detail = format!("a forward pass takes {seconds} s; `engine.forward_timeout` is {limit} s");
            Err(Problem::new(Kind::Unavailable, detail))
        }
    }
}

/// Reports readiness.
///
/// Ready while the device works, every eager model is loaded, a server answers for each model that is served elsewhere,
/// and the service does not shut down. The problem holds the same facts as the member `readiness`.
#[utoipa::path(
    get,
    path = "/readyz",
    tag = "operation",
    responses((status = 200, description = "Requests are served", body = Readiness), ReadyProblems)
)]
pub async fn readyz(ClientState(state): ClientState) -> Result<Json<Readiness>, Problem> {
    let facts = facts(&state);
    if facts.ready {
        return Ok(Json(facts));
    }
    // The engine also shuts down where its device is lost, and the threads of the device end where the service shuts down.
    let reason = if facts.device.lost || !(facts.device.alive || facts.draining) {
        "the device failed"
    } else if facts.draining {
        "the service is shutting down"
    } else {
        "an eager model is not loaded, or none of its servers answers"
    };
    let facts = serde_json::to_value(&facts).map_err(Problem::internal)?;
    Err(Problem::new(Kind::Unavailable, reason).with("readiness", facts))
}

/// True if requests are served as configured and clients may send more.
fn is_ready(state: &ApiState) -> bool {
    state.scorer.engine().is_ready() && !state.draining.is_cancelled()
}

fn facts(state: &ApiState) -> Readiness {
    let (engine, now) = (state.scorer.engine(), Instant::now());
    let status = engine.status();
    let seconds = |since: Instant| now.saturating_duration_since(since).as_secs_f64();
    Readiness {
        ready: is_ready(state),
        draining: status.draining || state.draining.is_cancelled(),
        device: DeviceFacts {
            alive: status.device_alive(),
            lost: status.device_lost.is_some(),
            busy_seconds: status.busy_since().map(seconds),
            last_success_seconds: status.last_ok.map(seconds),
        },
        models: state.scorer.pool().status().iter().map(ModelFact::from).collect(),
        record_is_written: state.record.as_ref().map(|record| !record.is_failing()),
    }
}

/// Metrics for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "operation",
    responses(
        (status = 200, description = "All series in the text format", body = String, content_type = "text/plain"),
        MetricsProblems
    )
)]
pub async fn metrics(ClientState(state): ClientState) -> Result<Response, Problem> {
    match state.metrics_apart {
        true => Err(Problem::new(Kind::NotFound, "metrics are on an address of their own, `server.metrics`")),
        false => Ok(rendered(&state)),
    }
}

/// The same on an address of its own.
pub async fn metrics_apart(State(RouterState(state)): State<RouterState>) -> Response {
    rendered(&state)
}

fn rendered(state: &ApiState) -> Response {
    metrics::gauge!(names::READY).set(f64::from(u8::from(is_ready(state))));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.metrics.render()).into_response()
}
