//! A server that answers as vLLM does, with the numbers of a golden.

use crate::common::goldens::{expected, numbers};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// The name of the model.
pub const NAME: &str = "golden";

/// The statistics of a sequence, by the ids: log-probability, that of the first choice, mean and variance.
type Known = HashMap<Vec<u32>, [Vec<f64>; 4]>;

/// Behaviour of the server; it may be changed between requests.
pub struct FakeState {
    known: Known,
    /// Maximum number of ids in a sequence.
    pub context: usize,
    /// The log-probability of ids that the golden does not have.
    pub unknown: f64,
    /// True if it has the plugin.
    pub plugin: bool,
    /// Change made to each answer.
    pub spoil: fn(&mut Value),
    /// The sizes of the batches so far.
    pub batches: Vec<usize>,
    /// The requests for continuations so far.
    pub continued: Vec<Value>,
}

pub struct FakeVllm {
    pub address: SocketAddr,
    pub state: Arc<Mutex<FakeState>>,
}

impl FakeVllm {
    /// A server with the numbers of a golden.
    pub async fn of(golden: &str) -> Self {
        let golden = expected(golden);
        let ids = |text: &Value| numbers(&text["ids"]).into_iter().map(|id| id as u32).collect();
        let squared = |sigma: &Value| numbers(sigma).iter().map(|sigma| sigma * sigma).collect();
        let columns = |text: &Value| {
            let tokens = &text["tokens"];
            [numbers(&tokens["logp"]), numbers(&tokens["top1"]), numbers(&tokens["mu"]), squared(&tokens["sigma"])]
        };
        let texts = golden["texts"].as_array().unwrap().iter().filter(|text| text["tokens"].is_object());
        let known = texts.map(|text| (ids(text), columns(text))).collect();
        let context = golden["context"].as_u64().unwrap() as usize;
        let (batches, continued) = (Vec::new(), Vec::new());
        let state = FakeState { known, context, unknown: -1.5, plugin: false, spoil: |_| (), batches, continued };
        let state = Arc::new(Mutex::new(state));
        let router = Router::new()
            .route("/version", get(|| async { Json(json!({ "version": "0.32.0" })) }))
            .route("/v1/models", get(models))
            .route("/v1/completions", post(complete))
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state }
    }
}

async fn models(State(state): State<Arc<Mutex<FakeState>>>) -> Json<Value> {
    let length = state.lock().unwrap().context + 1;
    Json(json!({ "object": "list", "data": [{ "id": NAME, "root": "/models/golden", "max_model_len": length }] }))
}

async fn complete(State(state): State<Arc<Mutex<FakeState>>>, Json(request): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut state = state.lock().unwrap();
    assert_eq!(&request["model"], &json!(NAME));
    if request.get("prompt_logprobs").is_none() {
        let mut answer = json!({ "id": "cmpl-2", "choices": continuations(&request) });
        state.continued.push(request);
        (state.spoil)(&mut answer);
        return (StatusCode::OK, Json(answer));
    }
    assert_eq!(&request["max_tokens"], &json!(1));
    let wants_moments = request["prompt_logprobs"] == 3;
    let prompts: Vec<Vec<u32>> = serde_json::from_value(request["prompt"].clone()).unwrap();
    if prompts.iter().any(|ids| ids.is_empty() || ids.len() > state.context) {
        let message = "This model's maximum context length is exceeded";
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": { "message": message, "code": 400 } })));
    }
    state.batches.push(prompts.len());
    let moments = wants_moments && state.plugin;
    let choices: Vec<Value> =
        prompts.iter().enumerate().map(|(index, ids)| choice(&state, index, ids, moments)).collect();
    let mut answer =
        json!({ "id": "cmpl-1", "model": NAME, "choices": choices, "system_fingerprint": "vllm-0.32.0-fake" });
    (state.spoil)(&mut answer);
    (StatusCode::OK, Json(answer))
}

/// Behind each id the server writes the next higher one, up to the first that ends texts.
fn continuations(request: &Value) -> Vec<Value> {
    let prompts: Vec<Vec<u32>> = serde_json::from_value(request["prompt"].clone()).unwrap();
    let ends: Vec<u32> = serde_json::from_value(request["stop_token_ids"].clone()).unwrap();
    let most = request["max_tokens"].as_u64().unwrap() as usize;
    let choice = |(index, ids): (usize, &Vec<u32>)| {
        let mut written: Vec<u32> = (ids.last().unwrap() + 1..).take(most).collect();
        let end = written.iter().position(|id| ends.contains(id));
        written.truncate(end.map_or(most, |end| end + 1));
        let reason = if end.is_some() { "stop" } else { "length" };
        json!({ "index": index, "text": "x", "prompt_token_ids": ids, "token_ids": written, "finish_reason": reason })
    };
    prompts.iter().enumerate().map(choice).collect()
}

/// The answer for a sequence. The first choice is some other token, unless it is this one; with the plugin the moments have
/// the ranks after it.
fn choice(state: &FakeState, index: usize, ids: &[u32], moments: bool) -> Value {
    let column = |number: f64| vec![number; ids.len() - 1];
    let unknown = || [column(state.unknown), column(-0.5), column(-2.0), column(1.0)];
    let [lp, top, mu, var] = state.known.get(ids).cloned().unwrap_or_else(unknown);
    let position = |(at, &id): (usize, &u32)| {
        let entry = |logprob: f64, rank: usize| json!({ "logprob": logprob, "rank": rank, "decoded_token": "a" });
        let mut candidates = Map::new();
        if lp[at] == top[at] {
            candidates.insert(id.to_string(), entry(lp[at], 1));
        } else {
            candidates.insert(id.to_string(), entry(lp[at], 2));
            candidates.insert((id + 1).to_string(), entry(top[at], 1));
        }
        let mut spare = (0..4).filter(|other| *other != id && *other != id + 1);
        for (number, rank) in [(mu[at], 2), (-var[at], 3)].into_iter().filter(|_| moments) {
            candidates.insert(spare.next().unwrap().to_string(), entry(number, rank));
        }
        Value::Object(candidates)
    };
    let rest = ids[1..].iter().enumerate().map(position);
    let positions: Vec<Value> = std::iter::once(Value::Null).chain(rest).collect();
    json!({ "index": index, "text": "x", "prompt_token_ids": ids, "prompt_logprobs": positions })
}
