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

/// Log-probabilities of a sequence and of the model's first choice, by the ids.
type Known = HashMap<Vec<u32>, (Vec<f64>, Vec<f64>)>;

/// How the server behaves; it may be changed between requests.
pub struct FakeState {
    known: Known,
    context: usize,
    /// The log-probability of ids that the golden does not have.
    pub unknown: f64,
    /// What is done to each answer.
    pub spoil: fn(&mut Value),
    /// The sizes of the batches so far.
    pub batches: Vec<usize>,
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
        let columns = |text: &Value| (numbers(&text["tokens"]["logp"]), numbers(&text["tokens"]["top1"]));
        let texts = golden["texts"].as_array().unwrap().iter().filter(|text| text["tokens"].is_object());
        let known = texts.map(|text| (ids(text), columns(text))).collect();
        let context = golden["context"].as_u64().unwrap() as usize;
        let state = FakeState { known, context, unknown: -1.5, spoil: |_| (), batches: Vec::new() };
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
    assert_eq!(
        (&request["max_tokens"], &request["prompt_logprobs"], &request["model"]),
        (&json!(1), &json!(1), &json!(NAME))
    );
    let prompts: Vec<Vec<u32>> = serde_json::from_value(request["prompt"].clone()).unwrap();
    if prompts.iter().any(|ids| ids.is_empty() || ids.len() > state.context) {
        let message = "This model's maximum context length is exceeded";
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": { "message": message, "code": 400 } })));
    }
    state.batches.push(prompts.len());
    let choices: Vec<Value> = prompts.iter().enumerate().map(|(index, ids)| choice(&state, index, ids)).collect();
    let mut answer = json!({ "id": "cmpl-1", "choices": choices, "system_fingerprint": "vllm-0.32.0-fake" });
    (state.spoil)(&mut answer);
    (StatusCode::OK, Json(answer))
}

fn choice(state: &FakeState, index: usize, ids: &[u32]) -> Value {
    let unknown = || (vec![state.unknown; ids.len() - 1], vec![-0.5; ids.len() - 1]);
    let (lp, top) = state.known.get(ids).cloned().unwrap_or_else(unknown);
    let position = |(id, (lp, top)): (&u32, (&f64, &f64))| {
        let mut candidates = Map::new();
        // The first choice is some other token, unless it is this one.
        candidates.insert((id + 1).to_string(), json!({ "logprob": top, "rank": 1, "decoded_token": "a" }));
        candidates.insert(id.to_string(), json!({ "logprob": lp, "rank": 9, "decoded_token": "b" }));
        if lp == top {
            candidates.remove(&(id + 1).to_string());
        }
        Value::Object(candidates)
    };
    let rest = ids[1..].iter().zip(lp.iter().zip(&top)).map(position);
    let positions: Vec<Value> = std::iter::once(Value::Null).chain(rest).collect();
    json!({ "index": index, "text": "x", "prompt_token_ids": ids, "prompt_logprobs": positions })
}
