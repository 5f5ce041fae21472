//! Answers of SGLang, as its documents and sources have them:
//! <https://docs.sglang.io/basic_usage/native_api.html>, `http_server.py` and `scheduler_output_processor_mixin.py` of
//! <https://github.com/sgl-project/sglang/tree/main/python/sglang/srt>.

use super::fake_server::{FakeState, refused};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

type SharedState = State<Arc<Mutex<FakeState>>>;

pub fn routes() -> Router<Arc<Mutex<FakeState>>> {
    Router::new()
        .route("/model_info", get(model_info))
        .route(
            "/get_model_info",
            get(|State(state): SharedState| async move { Json(state.lock().unwrap().model_info()) }),
        )
        .route("/server_info", get(server_info))
        .route(
            "/get_server_info",
            get(|State(state): SharedState| async move { Json(state.lock().unwrap().server_info()) }),
        )
        .route("/generate", post(generate))
}

async fn model_info(State(state): SharedState) -> Result<Json<Value>, StatusCode> {
    let state = state.lock().unwrap();
    if state.is_early { Err(StatusCode::NOT_FOUND) } else { Ok(Json(state.model_info())) }
}

async fn server_info(State(state): SharedState) -> Result<Json<Value>, StatusCode> {
    let state = state.lock().unwrap();
    if state.is_early { Err(StatusCode::NOT_FOUND) } else { Ok(Json(state.server_info())) }
}

impl FakeState {
    fn model_info(&self) -> Value {
        json!({
            "model_path": "/models/golden", "tokenizer_path": "/models/golden", "is_generation": true,
            "preferred_sampling_params": null, "weight_version": "default", "has_image_understanding": false,
            "has_audio_understanding": false, "model_type": "gpt_neox", "architectures": ["GPTNeoXForCausalLM"],
        })
    }

    /// The settings of the server, with what its scheduler says.
    fn server_info(&self) -> Value {
        json!({
            "model_path": "/models/golden", "served_model_name": self.name, "context_length": null, "weight_version": "default",
            "max_total_num_tokens": 65536, "max_req_input_len": self.context, "internal_states": [], "version": "0.5.23",
        })
    }

    /// The id that the answer has for one that was sent.
    fn reported_id(&self, id: u32) -> u32 {
        if id < self.vocab_size - 1 { id } else { 0 }
    }

    /// The `wanted` most probable ids at a position; the id of the text is among them only where it is the first choice.
    fn best(&self, id: u32, lp: f64, top: f64, wanted: usize) -> Value {
        let first = if lp == top { id } else { (id + 1) % self.vocab_size };
        // The other ids share the remaining probability, so each of them has less than these.
        let others = (2..)
            .map(|step| (id + step) % self.vocab_size)
            .zip(1..)
            .map(|(id, rank)| (id, top - 3.0 - f64::from(rank)));
        let entries = std::iter::once((first, top)).chain(others).take(wanted);
        Value::Array(entries.map(|(id, lp)| json!([lp, id, null])).collect())
    }

    /// The part about one prompt. The first id has no log-probability, and texts are left out unless they are asked for.
    fn answer(&self, ids: &[u32], request: &Value) -> Value {
        let wanted = request["top_logprobs_num"].as_u64().unwrap() as usize;
        let generated = request["sampling_params"]["max_new_tokens"].as_u64().unwrap();
        let [lp, top, ..] = self.columns(ids);
        let came = |(at, &id): (usize, &u32)| json!([at.checked_sub(1).map(|at| lp[at]), self.reported_id(id), null]);
        let best = |(at, &id): (usize, &u32)| match at.checked_sub(1) {
            None => Value::Null,
            Some(before) => self.best(id, lp[before], top[before], wanted),
        };
        let came: Vec<Value> = ids.iter().enumerate().map(came).collect();
        let best: Vec<Value> = ids.iter().enumerate().map(best).collect();
        json!({ "text": "", "output_ids": [], "meta_info": {
            "id": "a", "finish_reason": { "type": "length", "length": generated }, "prompt_tokens": ids.len(),
            "weight_version": "default", "total_retractions": 0, "input_token_logprobs": came, "output_token_logprobs": [],
            "input_top_logprobs": best, "output_top_logprobs": [], "completion_tokens": generated, "cached_tokens": 0,
            "e2e_latency": 0.01,
        } })
    }
}

async fn generate(State(state): SharedState, Json(request): Json<Value>) -> (StatusCode, Json<Value>) {
    let mut state = state.lock().unwrap();
    for (key, value) in [("return_logprob", json!(true)), ("logprob_start_len", json!(0))] {
        assert_eq!(request[key], value, "{key}");
    }
    let prompts: Vec<Vec<u32>> = serde_json::from_value(request["input_ids"].clone()).unwrap();
    if prompts.iter().any(|ids| ids.len() > state.context) {
        return refused("The input is longer than the model's context length.");
    }
    state.batches.push(prompts.len());
    let mut answer = Value::Array(prompts.iter().map(|ids| state.answer(ids, &request)).collect());
    state.asked.push(request);
    (state.spoil)(&mut answer);
    (StatusCode::OK, Json(answer))
}
