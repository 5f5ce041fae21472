//! `POST /v1/score`: texts in, scores out, while the client waits.

use super::extract::JsonBody;
use super::middleware::Arrival;
use super::problem::Problem;
use super::problem::responses::ScoreProblems;
use super::score_calibration::{CalibrationEcho, RequestCalibration, places};
use super::score_request::{CheckedScore, ScoreRequest};
use super::state::{ApiState, ClientState};
use crate::audits::CalibrationMismatch;
use crate::datasets::estimated_tokens;
use crate::pool::ModelInfo;
use crate::scorer::{Bound, Input, Plan, Scored, ScorerError, ScoringTimes, TextResult, Usage};
use crate::telemetry::names;
use axum::Extension;
use axum::response::Response;
use mia::methods::LabelledMethod;
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::Span;
use utoipa::ToSchema;

/// The scores.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScoreResponse {
    model: ModelInfo,
    /// The methods as they were understood, every parameter included.
    methods: Vec<LabelledMethod>,
    /// One result a text, in order.
    results: Vec<TextResult>,
    usage: Usage,
    /// The calibration, where the request names one.
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<CalibrationEcho>,
}

/// Score texts.
///
/// Every text gets a score for every method; a higher score means that the text is more likely a member of the model's
/// training data. A text that cannot be scored has `errors` in its result and does not fail the request.
#[utoipa::path(
    post,
    path = "/v1/score",
    tag = "scoring",
    request_body(content = ScoreRequest, examples(
        ("one text" = (summary = "One text, default methods", value = json!({ "inputs": "The quick brown fox jumps over the lazy dog." }))),
        ("chosen methods" = (summary = "Several texts, chosen methods, details", value = json!({
            "inputs": ["The quick brown fox jumps over the lazy dog.", { "id": "b", "text": "Call me Ishmael. Some years ago." }],
            "methods": ["loss", { "name": "min_k_plus_plus", "k": 0.2, "pdr": { "decay": "linear", "alpha": 1.0 }, "label": "mine" }],
            "overflow": "truncate",
            "details": ["tokens"]
        })))
    )),
    responses((status = 200, description = "The scores", body = ScoreResponse), ScoreProblems),
)]
pub async fn score(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JsonBody(request): JsonBody<ScoreRequest>,
) -> Result<Response, Problem> {
    let request = request.rendered(&state).await?;
    // Looking for texts that are scored and put before others hashes them all: no work for the threads that answer everybody.
    let checking = state.clone();
    let CheckedScore { plan, inputs, calibration } =
        state.scorer.workers().run(move || request.check(&checking)).await??;
    let calibration = match calibration {
        Some(id) => Some(RequestCalibration::new(&state, id, &inputs).await?),
        None => None,
    };
    state.note.update(|work| (work.model, work.texts) = (Some(plan.model.clone()), Some(inputs.len())));
    let bytes: usize = inputs.iter().map(|input| input.text.len()).sum();
    let tokens = state.client.quota.reserve(estimated_tokens(bytes as u64), Instant::now())?;
    // The engine keeps the deadline; this keeps it for what happens around the engine.
    let work = run(&state, &plan, inputs, arrival.deadline(state.request_timeout), calibration.as_ref());
    let done = arrival.in_time(state.request_timeout, work).await;
    let late = || Problem::of_scoring(None, state.request_timeout);
    let (bound, mut scored, places) = match done.ok_or_else(late)? {
        // A request that was not admitted or has a fault costs nothing; one that takes too long costs what it was expected to.
        Err(problem) => {
            if !problem.is_late() {
                tokens.give_back();
            }
            return Err(problem);
        }
        Ok(done) => done,
    };
    let (model, methods) = (bound.models[0].info.clone(), bound.plan.methods.to_vec());
    let usage = scored.usage;
    // A reference model, neighbours and prefixes cost passes as well.
    let passes = (usage.forward_passes + usage.cached_passes).div_ceil(scored.results.len().max(1)).max(1);
    tokens.settle(usage.tokens.saturating_mul(passes));
    state.note.update(|work| {
        work.model_digest = Some(model.digest.clone());
        work.tokens = Some(usage.tokens);
    });
    let calibration = match calibration {
        None => None,
        Some(calibration) => {
            // To fold and hash all texts is no work for the threads that answer everybody.
            let add = move || {
                let echo = calibration.add_p_values(&places, &bound.plan.methods, &mut scored.results)?;
                Ok::<_, CalibrationMismatch>((scored, echo))
            };
            let echo;
            (scored, echo) = state.scorer.workers().run(add).await??;
            Some(echo)
        }
    };
    let (times, scored_at) = (scored.times, Instant::now());
    let response = ScoreResponse { model, methods, results: scored.results, usage: scored.usage, calibration };
    let response = state.json(response).await?;
    note_stages(&times, times.methods + scored_at.elapsed());
    Ok(response)
}

async fn run(
    state: &ApiState,
    plan: &Plan,
    inputs: Vec<Input>,
    deadline: Option<Instant>,
    calibration: Option<&RequestCalibration>,
) -> Result<(Arc<Bound>, Scored, Vec<usize>), Problem> {
    let failed = |error: ScorerError| Problem::of_scoring(Some(error), state.request_timeout);
    let bound = state.scorer.bind(plan).await.map_err(failed)?;
    let places = calibration.map_or(Ok(Vec::new()), |used| places(&used.calibration, &bound))?;
    let scored = state.scorer.score(&bound, inputs, deadline, &state.memory).await.map_err(failed)?;
    Ok((bound, scored, places))
}

/// Notes the stages of a request that is answered. `answering` is what came after the last forward pass.
fn note_stages(times: &ScoringTimes, answering: Duration) {
    let span = Span::current();
    let note = |stage: &'static str, field: &'static str, time: Duration| {
        metrics::histogram!(names::SCORE_STAGE_SECONDS, "stage" => stage).record(time);
        span.record(field, time.as_secs_f64());
    };
    note("tokenize", "tokenize_seconds", times.tokenize);
    note("queue", "queue_seconds", times.queue);
    note("forward", "forward_seconds", times.forward);
    note("answer", "answer_seconds", answering);
}
