//! `POST /v1/token-stats`: token ids in, the four numbers of every token out. What methods are computed from, for whoever
//! computes them elsewhere.

use super::accept;
use super::check::{self, RequestFaults};
use super::extract::JsonBody;
use super::middleware::Arrival;
use super::problem::responses::TokenStatsProblems;
use super::problem::{Kind, Problem};
use super::state::{ApiState, ClientState};
use crate::engine::{EngineError, Stats};
use crate::pool::{Declaration, Model, ModelInfo, Retry};
use crate::scorer::{MAX_ANSWER_BYTES, ScorerError, SequenceStats, Usage};
use crate::wire::Shaped;
use axum::Extension;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use mia::TokenStats;
use mia::json::BoundedList;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use utoipa::ToSchema;

/// The media type of an answer as a safetensors file.
const FILE: &str = "application/octet-stream";
/// About how many bytes of JSON the four numbers of a token take at most, and in a file.
const JSON_BYTES_PER_TOKEN: usize = 100;
const FILE_BYTES_PER_TOKEN: usize = 32;

/// Maximum number of sequences in a request, whatever `limits.inputs` allows.
const MAX_SEQUENCES: usize = 1 << 16;

/// Token ids, and the model that they are for.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenStatsRequest {
    /// Id of a configured model; may be left out where there is a default.
    #[schema(examples("demo"))]
    model: Option<String>,
    /// The sequences of token ids, up to `limits.inputs`, with whatever the model wants before the first token of a text. With
    /// none, the answer only describes the model.
    #[schema(value_type = Vec<Vec<u32>>, max_items = 65536)]
    sequences: Shaped<BoundedList<Vec<u32>, MAX_SEQUENCES>>,
    /// The identity that the model must have, as an earlier answer gave it: where it has another, the request is refused
    /// with 409 and nothing is computed.
    #[schema(value_type = Option<String>)]
    identity: Option<Shaped<String>>,
}

/// The model and the statistics.
#[derive(Debug, Serialize, ToSchema)]
pub struct TokenStatsResponse {
    #[serde(flatten)]
    served: ServedModel,
    /// The statistics of each sequence, in order.
    sequences: Vec<StatsColumns>,
}

/// The model that computed statistics, and what it took.
#[derive(Debug, Serialize, ToSchema)]
pub struct ServedModel {
    model: ModelInfo,
    /// All that its numbers depend on: the weights, the type that it computes in, the device, the instructions and the sources of
    /// the kernels. Models of the same identity give the same bits.
    identity: String,
    /// The version of this program.
    #[schema(examples("0.1.0"))]
    version: &'static str,
    /// Maximum number of ids of a sequence; null if there is no limit.
    context: Option<usize>,
    /// Every id below is one of its tokens.
    vocab_size: usize,
    usage: Usage,
}

/// The statistics of one sequence, by column: each has an entry per id but the first. A number that JSON does not have is null.
#[derive(Debug, Serialize, ToSchema)]
pub struct StatsColumns {
    /// Log-probability of the token given all before it.
    lp: Vec<Option<f64>>,
    /// Mean over the vocabulary of the log-probability there, weighted by the probability.
    mu: Vec<Option<f64>>,
    /// Variance over the vocabulary of the log-probability there, weighted by the probability.
    var: Vec<Option<f64>>,
    /// Log-probability of the most probable token there.
    max_lp: Vec<Option<f64>>,
}

impl StatsColumns {
    fn new(stats: &[TokenStats]) -> Self {
        let column = |number: fn(&TokenStats) -> f64| {
            stats.iter().map(|stats| Some(number(stats)).filter(|number| number.is_finite())).collect()
        };
        Self { lp: column(|s| s.lp), mu: column(|s| s.mu), var: column(|s| s.var), max_lp: column(|s| s.max_lp) }
    }
}

/// Statistics of token ids.
///
/// Every id but the first of its sequence gets the four numbers that all likelihood methods are computed from. With `accept:
/// application/octet-stream` the answer is a safetensors file: `stats` has the numbers in the order lp, mu, var, max_lp, as f64
/// `[tokens, 4]` of all sequences one after another, `lengths` how many tokens each has, as u32; its metadata have the rest of the
/// answer in JSON under `served`.
#[utoipa::path(
    post,
    path = "/v1/token-stats",
    tag = "scoring",
    request_body(content = TokenStatsRequest, example = json!({ "sequences": [[5, 62, 17, 300]] })),
    responses(
        (status = 200, description = "The statistics", content((TokenStatsResponse = "application/json"), (Vec<u8> = "application/octet-stream"))),
        TokenStatsProblems
    ),
)]
pub async fn token_stats(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<TokenStatsRequest>,
) -> Result<Response, Problem> {
    let json = accept::preference(&headers, "application/json");
    let binary = accept::preference(&headers, FILE);
    if json.is_none() && binary.is_none() {
        return Err(Problem::not_acceptable(&["application/json", FILE]));
    }
    let checking = state.clone();
    let checked = state.scorer.workers().run(move || request.check(&checking)).await??;
    let (ids, sequences) = (checked.sequences.iter().map(|ids| ids.len()).sum(), checked.sequences.len());
    let answer = check_answer(ids, if binary > json { FILE_BYTES_PER_TOKEN } else { JSON_BYTES_PER_TOKEN })?;
    state.memory.grow_by(answer as u64)?;
    state.note.update(|work| (work.model, work.texts) = (Some(checked.model.id.clone()), Some(sequences)));
    let tokens = state.client.quota.reserve(ids as u64, Instant::now())?;
    let work = run(&state, &checked, arrival.deadline(state.request_timeout));
    let done = arrival.in_time(state.request_timeout, work).await;
    let (model, stats) = match done.unwrap_or_else(|| Err(Problem::deadline())) {
        Err(problem) => {
            if !problem.is_late() {
                tokens.give_back();
            }
            return Err(problem);
        }
        Ok(done) => done,
    };
    tokens.settle(stats.usage.tokens);
    state.note.update(|work| {
        work.model_digest = Some(model.info.digest.clone());
        work.tokens = Some(stats.usage.tokens);
    });
    written(&state, &model, stats, binary > json).await
}

/// The answer, as a file or in JSON.
async fn written(state: &ApiState, model: &Model, stats: SequenceStats, as_file: bool) -> Result<Response, Problem> {
    let served = ServedModel {
        model: model.info.clone(),
        identity: identity(model),
        version: env!("CARGO_PKG_VERSION"),
        context: model.context,
        vocab_size: model.vocab_size,
        usage: stats.usage,
    };
    if as_file {
        let written = state.scorer.workers().run(move || file(&served, &stats.sequences)).await?;
        return Ok(([(header::CONTENT_TYPE, FILE), (header::VARY, "accept")], written?).into_response());
    }
    let columns = move || stats.sequences.iter().map(|stats| StatsColumns::new(stats)).collect();
    let sequences = state.scorer.workers().run(columns).await?;
    let mut response = state.json(TokenStatsResponse { served, sequences }).await?;
    response.headers_mut().insert(header::VARY, header::HeaderValue::from_static("accept"));
    Ok(response)
}

/// The safetensors file: `stats`, `lengths`, and as metadata what is `served`. Numbers are as they are, without a decimal in between.
fn file(served: &impl Serialize, sequences: &[Stats]) -> Result<Vec<u8>, Problem> {
    let rows = sequences.iter().flat_map(|stats| stats.iter());
    let stats: Vec<u8> = rows.flat_map(|s| [s.lp, s.mu, s.var, s.max_lp]).flat_map(f64::to_le_bytes).collect();
    let lengths: Vec<u32> = sequences
        .iter()
        .map(|stats| u32::try_from(stats.len()))
        .collect::<Result<_, _>>()
        .map_err(Problem::internal)?;
    let lengths: Vec<u8> = lengths.into_iter().flat_map(u32::to_le_bytes).collect();
    let tensor = |dtype, shape, bytes| TensorView::new(dtype, shape, bytes).map_err(Problem::internal);
    let tensors = [
        ("stats", tensor(Dtype::F64, vec![stats.len() / 32, 4], &stats)?),
        ("lengths", tensor(Dtype::U32, vec![sequences.len()], &lengths)?),
    ];
    let metadata = HashMap::from([("served".to_owned(), serde_json::to_string(served).map_err(Problem::internal)?)]);
    safetensors::serialize(tensors, Some(metadata)).map_err(Problem::internal)
}

/// The identity of a model whose numbers another process takes for its own: the sources of the kernels are a part of it.
fn identity(model: &Model) -> String {
    format!("{} {}", model.identity, lm::NUMERICS)
}

/// Returns the estimated size of an answer in bytes; refuses one that is too long.
fn check_answer(tokens: usize, bytes_per_token: usize) -> Result<usize, Problem> {
    let bytes = tokens.saturating_mul(bytes_per_token);
    if bytes <= MAX_ANSWER_BYTES {
        return Ok(bytes);
    }
    let detail =
        format!("the answer about {tokens} tokens may take some {bytes} bytes; the limit is {MAX_ANSWER_BYTES}");
    Err(Problem::new(Kind::TooLarge, detail))
}

async fn run(
    state: &ApiState,
    checked: &CheckedSequences,
    deadline: Option<Instant>,
) -> Result<(Arc<Model>, SequenceStats), Problem> {
    let failed = |error: ScorerError| match error {
        // With 503 a front would ask for the same again and again; this counts against the sequences.
        ScorerError::Failed(EngineError::ModelFailed(reason) | EngineError::DeviceLost(reason)) => {
            Problem::internal(reason)
        }
        error => Problem::of_scoring(Some(error), state.request_timeout),
    };
    let model = state.scorer.pool().open(&checked.model.id, Retry::AfterPause).await;
    let model = model.map_err(|error| failed(error.into()))?;
    let actual = identity(&model);
    if let Some(identity) = checked.identity.as_ref().filter(|identity| **identity != actual) {
        let detail = format!("model `{}` has the identity `{actual}`, not `{identity}`", model.id());
        return Err(Problem::new(Kind::Conflict, detail));
    }
    let outside = |ids: &Arc<[u32]>| ids.iter().position(|&id| id as usize >= model.vocab_size);
    let mut faults = RequestFaults::default();
    for (index, ids) in checked.sequences.iter().enumerate() {
        if let Some(place) = outside(ids) {
            let detail = format!("id {} is outside the vocabulary of {} tokens", ids[place], model.vocab_size);
            faults.push(format!("/sequences/{index}/{place}"), detail);
        }
    }
    faults.finish()?;
    let stats = state.scorer.token_stats(&model, &checked.sequences, deadline).await.map_err(failed)?;
    Ok((model, stats))
}

/// A request without faults, as far as can be told before the model is open.
struct CheckedSequences {
    model: Arc<Declaration>,
    sequences: Vec<Arc<[u32]>>,
    identity: Option<String>,
}

impl TokenStatsRequest {
    fn check(self, state: &ApiState) -> Result<CheckedSequences, Problem> {
        let mut faults = RequestFaults::default();
        let model = check::model(state, self.model.as_deref(), &mut faults)?;
        let sequences = check::shaped("/sequences", Some(self.sequences), &mut faults);
        let identity = check::shaped("/identity", self.identity, &mut faults);
        faults.finish()?;
        let (Some(model), Some(BoundedList(sequences))) = (model, sequences) else {
            return Err(Problem::internal("a request without faults has no model or no sequences"));
        };
        let (count, limit) = (sequences.len(), state.limits.inputs);
        if count > limit {
            let detail = format!("there are {count} sequences; the limit `limits.inputs` is {limit}");
            return Err(Problem::new(Kind::TooLarge, detail));
        }
        Ok(CheckedSequences { model, sequences: sequences.into_iter().map(Arc::from).collect(), identity })
    }
}
