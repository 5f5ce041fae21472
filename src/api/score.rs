//! `POST /v1/score`: texts in, scores out, while the client waits.

use super::check::{self, MethodRequests, RequestFaults};
use super::client_state::ClientState;
use super::extract::JsonBody;
use super::inputs::Inputs;
use super::middleware::Arrival;
use super::problem::{Kind, Problem};
use super::problems::ScoreProblems;
use super::score_calibration::{CalibrationEcho, RequestCalibration, places};
use super::state::ApiState;
use super::{answer, stages};
use crate::audits::CalibrationMismatch;
use crate::pool::ModelInfo;
use crate::scorer::{Bound, Input, Overflow, Plan, Scored, ScorerError, TextResult, Usage};
use crate::wire::Shaped;
use axum::Extension;
use axum::response::Response;
use mia::json::{BoundedList, TooMany};
use mia::methods::{LabelledMethod, MethodRequest};
use serde::Serialize;
use std::sync::Arc;
use std::time::Instant;
use utoipa::ToSchema;

/// The details that a request can ask for.
const TOKENS: &str = "tokens";
/// About how many bytes a token has, before texts are tokenized.
const BYTES_PER_TOKEN: usize = 4;
/// Maximum number of details in a request; there are fewer kinds of them.
const MAX_DETAILS: usize = 64;

/// Texts to score, and how.
#[derive(Debug, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScoreRequest {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    pub(super) model: Option<String>,
    /// The texts.
    #[schema(value_type = Inputs)]
    pub(super) inputs: Result<Inputs, TooMany>,
    /// Methods to compute; loss, zlib, min_k and min_k_plus_plus, plain and with linear decay, if left out.
    #[schema(max_items = 256, value_type = Option<Vec<MethodRequest>>)]
    pub(super) methods: Option<MethodRequests>,
    /// Treatment of a text that is longer than the model's context: `error` if left out.
    #[schema(value_type = Option<Overflow>)]
    pub(super) overflow: Option<Shaped<Overflow>>,
    /// `tokens` lists every token with what it adds to the scores.
    #[schema(examples("tokens"), value_type = Option<Vec<String>>)]
    pub(super) details: Option<Shaped<BoundedList<String, MAX_DETAILS>>>,
    /// Id of a calibration by the same model, adapter, methods and `overflow`: every score gets a p-value against its known
    /// non-members.
    #[schema(value_type = Option<String>)]
    pub(super) calibration: Option<Shaped<String>>,
}

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
    let tokens = state.client.quota.reserve(bytes / BYTES_PER_TOKEN, Instant::now())?;
    let deadline = arrival.deadline(state.request_timeout);
    let work = run(&state, &plan, inputs, deadline, calibration.as_ref());
    let done = match deadline {
        // The engine keeps the deadline; this keeps it for what happens around the engine.
        Some(at) => {
            let late = |_| Problem::of_scoring(None, state.request_timeout);
            tokio::time::timeout_at(at.into(), work).await.map_err(late)?
        }
        None => work.await,
    };
    let (bound, mut scored, places) = match done {
        // A request that was not admitted or has a fault costs nothing.
        Err(problem) => {
            tokens.give_back();
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
    let response = answer::json(&state, response).await?;
    stages::note(&times, times.methods + scored_at.elapsed());
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
    let scored = state.scorer.score(&bound, inputs, deadline).await.map_err(failed)?;
    Ok((bound, scored, places))
}

/// A request without faults.
struct CheckedScore {
    plan: Plan,
    inputs: Vec<Input>,
    /// Id of the calibration.
    calibration: Option<String>,
}

impl ScoreRequest {
    /// The request as the scorer takes it, or everything that is wrong with it.
    fn check(self, state: &ApiState) -> Result<CheckedScore, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let inputs = match self.inputs {
            Ok(inputs) => inputs.into_list(),
            Err(TooMany { count, limit }) => {
                let detail = format!("there are {count} inputs; the limit `limits.inputs` is {limit}");
                return Err(Problem::new(Kind::TooLarge, detail));
            }
        };
        if inputs.is_empty() {
            faults.push("/inputs", "the list of inputs is empty: it takes at least one");
        }
        let neighbors = inputs.iter().all(|input| input.neighbors.is_some());
        let ids = state.scorer.pool().ids();
        let scope = state.scorer.scope(&ids, model.as_deref(), false, neighbors);
        let methods: Arc<[LabelledMethod]> = check::methods(self.methods, &scope, &mut faults);
        let texts = inputs.iter().map(|input| (input.text.as_str(), input.neighbors.as_deref()));
        check::texts("/inputs", texts, &methods, &mut faults);
        let details = check::shaped("/details", self.details, &mut faults);
        let tokens = details.is_some_and(|BoundedList(details)| wants_tokens(&details, &mut faults));
        let overflow = check::shaped("/overflow", self.overflow, &mut faults).unwrap_or_default();
        let calibration = check::shaped("/calibration", self.calibration, &mut faults);
        faults.finish()?;
        let model = model.ok_or_else(|| Problem::internal("a request without faults has no model"))?;
        let plan = Plan { model: model.id.clone(), methods, overflow, tokens, splits: Arc::new([]) };
        Ok(CheckedScore { plan, inputs, calibration })
    }
}

fn wants_tokens(details: &[String], faults: &mut RequestFaults) -> bool {
    for (index, detail) in details.iter().enumerate().filter(|(_, detail)| *detail != TOKENS) {
        let given: String = detail.chars().take(60).collect();
        faults.push(format!("/details/{index}"), format!("unknown detail `{given}`, known is {TOKENS}"));
    }
    details.iter().any(|detail| detail == TOKENS)
}
