//! A server that answers as vLLM, SGLang and servers of OpenAI's kind do, with the numbers of a golden.

use super::fake_echo::{EchoManners, echo};
use super::fake_sglang;
use crate::common::goldens::{directory, expected, numbers};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use lm::tokenizer::Tokenizer;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// The name of the model, unless a test gives it another.
pub const NAME: &str = "golden";

/// The statistics of a sequence, by the ids: log-probability, that of the first choice, mean and variance.
type Known = HashMap<Vec<u32>, [Vec<f64>; 4]>;

/// Behaviour of the server; it may be changed between requests.
pub struct FakeState {
    known: Known,
    /// The name of the model.
    pub name: String,
    /// The tokenizer of the golden.
    pub tokenizer: Tokenizer,
    /// Maximum number of ids in a sequence.
    pub context: usize,
    /// One more than the largest id.
    pub vocab_size: u32,
    /// The log-probability of ids that the golden does not have.
    pub unknown: f64,
    /// True if those are numbers that differ by what comes before, in place of `unknown`.
    pub varied: bool,
    /// True if its logarithms are decimal.
    pub is_decimal: bool,
    /// True if it has the plugin.
    pub plugin: bool,
    /// True if it has the routes of earlier versions of SGLang alone.
    pub is_early: bool,
    /// How it answers as a server of OpenAI's kind.
    pub echo: EchoManners,
    /// Change made to each answer.
    pub spoil: fn(&mut Value),
    /// The sizes of the batches so far.
    pub batches: Vec<usize>,
    /// The requests for continuations so far.
    pub continued: Vec<Value>,
    /// The requests for echoes, and those of SGLang, so far.
    pub asked: Vec<Value>,
}

pub struct FakeServer {
    pub address: SocketAddr,
    pub state: Arc<Mutex<FakeState>>,
}

impl FakeServer {
    /// A server with the numbers of a golden.
    pub async fn of(golden: &str) -> Self {
        let tokenizer = std::fs::read(directory(golden).join("tokenizer.json")).unwrap();
        let tokenizer = Tokenizer::from_json(&tokenizer).unwrap();
        let config: Value =
            serde_json::from_slice(&std::fs::read(directory(golden).join("config.json")).unwrap()).unwrap();
        let golden = expected(golden);
        let ids = |text: &Value| numbers(&text["ids"]).into_iter().map(|id| id as u32).collect();
        let squared = |sigma: &Value| numbers(sigma).iter().map(|sigma| sigma * sigma).collect();
        let columns = |text: &Value| {
            let tokens = &text["tokens"];
            [numbers(&tokens["logp"]), numbers(&tokens["top1"]), numbers(&tokens["mu"]), squared(&tokens["sigma"])]
        };
        let texts = golden["texts"].as_array().unwrap().iter().filter(|text| text["tokens"].is_object());
        let state = FakeState {
            known: texts.map(|text| (ids(text), columns(text))).collect(),
            name: NAME.to_owned(),
            tokenizer,
            vocab_size: config["vocab_size"].as_u64().unwrap() as u32,
            context: golden["context"].as_u64().unwrap() as usize,
            unknown: -1.5,
            varied: false,
            is_decimal: false,
            plugin: false,
            is_early: false,
            echo: EchoManners::default(),
            spoil: |_| (),
            batches: Vec::new(),
            continued: Vec::new(),
            asked: Vec::new(),
        };
        let state = Arc::new(Mutex::new(state));
        let router = Router::new()
            .route("/version", get(|| async { Json(json!({ "version": "0.32.0" })) }))
            .route("/v1/models", get(models))
            .route("/v1/completions", post(complete))
            .merge(fake_sglang::routes())
            .with_state(Arc::clone(&state));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl FakeState {
    /// Log-probability, that of the first choice, mean and variance of each id but the first.
    pub fn columns(&self, ids: &[u32]) -> [Vec<f64>; 4] {
        if let Some(known) = self.known.get(ids) {
            return known.clone();
        }
        let numbers = (1..ids.len()).map(|at| match self.varied {
            true => self.varied_numbers(&ids[..at], ids[at]),
            false => [self.unknown, -0.5],
        });
        let unit = if self.is_decimal { std::f64::consts::LN_10 } else { 1.0 };
        let (lp, top) = numbers.map(|[lp, top]| (lp / unit, top / unit)).unzip();
        [lp, top, vec![-2.0; ids.len() - 1], vec![1.0; ids.len() - 1]]
    }

    /// The id that the server holds for the most probable one behind others, and its log-probability.
    pub fn first_choice(&self, before: &[u32]) -> (u32, f64) {
        if !self.varied {
            return (7, -0.5);
        }
        let seed = seed(before);
        ((seed % 500) as u32, -0.7 - (seed % 190) as f64 / 100.0)
    }

    /// Numbers of a distribution: the first choice has a probability below a half, and all others less than that.
    pub fn varied_numbers(&self, before: &[u32], id: u32) -> [f64; 2] {
        let (first, top) = self.first_choice(before);
        let lp = if id == first { top } else { top - 0.3 - (seed(before) % 97 + u64::from(id) % 101) as f64 / 20.0 };
        [lp, top]
    }
}

fn seed(ids: &[u32]) -> u64 {
    let mut hasher = DefaultHasher::new();
    ids.hash(&mut hasher);
    hasher.finish()
}

async fn models(State(state): State<Arc<Mutex<FakeState>>>) -> Json<Value> {
    let state = state.lock().unwrap();
    let card = json!({ "id": state.name, "root": "/models/golden", "max_model_len": state.context + 1 });
    Json(json!({ "object": "list", "data": [card] }))
}

pub fn refused(message: &str) -> (StatusCode, Json<Value>) {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": { "message": message, "code": 400 } })))
}

async fn complete(State(state): State<Arc<Mutex<FakeState>>>, Json(request): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut state = state.lock().unwrap();
    if request["model"] != state.name {
        let message = format!("The model {} does not exist.", request["model"]);
        return (StatusCode::NOT_FOUND, Json(json!({ "error": { "message": message, "code": 404 } })));
    }
    if request.get("logprobs").is_some() {
        return echo(&mut state, request);
    }
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
        return refused("This model's maximum context length is exceeded");
    }
    state.batches.push(prompts.len());
    let moments = wants_moments && state.plugin;
    let choices: Vec<Value> =
        prompts.iter().enumerate().map(|(index, ids)| choice(&state, index, ids, moments)).collect();
    let mut answer =
        json!({ "id": "cmpl-1", "model": state.name, "choices": choices, "system_fingerprint": "vllm-0.32.0-fake" });
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
    let [lp, top, mu, var] = state.columns(ids);
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
