//! Text Generation Inference behind a front, by its documents and sources:
//! <https://huggingface.co/docs/text-generation-inference/reference/api_reference> and `router/src/lib.rs` of
//! <https://github.com/huggingface/text-generation-inference>.
//!
//! `/v1/completions` takes texts and at least one token to generate, does not know `echo`, and its `logprobs` are always null.
//! `/generate` has log-probabilities of prompts, and these only with `--enable-prefill-logprobs`; no kind of server asks it.

use super::fake_server::NAME;
use super::opening_fault;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use pdr_audit::config::ServedKind;
use serde_json::{Value, json};

async fn models() -> Json<Value> {
    let card = json!({ "id": NAME, "object": "model", "created": 0, "owned_by": NAME });
    Json(json!({ "object": "list", "data": [card] }))
}

async fn info() -> Json<Value> {
    Json(json!({
        "model_id": NAME, "model_sha": null, "model_pipeline_tag": "text-generation", "max_concurrent_requests": 128,
        "max_best_of": 2, "max_stop_sequences": 4, "max_input_tokens": 127, "max_total_tokens": 128, "validation_workers": 2,
        "max_client_batch_size": 4, "router": "text-generation-router", "version": "3.3.4", "sha": null, "docker_label": null,
    }))
}

async fn complete(Json(request): Json<Value>) -> Result<Json<Value>, (StatusCode, String)> {
    let refused = |said: String| Err((StatusCode::UNPROCESSABLE_ENTITY, said));
    let prompt = &request["prompt"];
    if !prompt.is_string() && !prompt[0].is_string() {
        return refused(
            "Failed to deserialize the JSON body into the target type: prompt: data did not match".to_owned(),
        );
    }
    if request["max_tokens"] == 0 {
        let error = "Input validation error: `max_new_tokens` must be strictly positive";
        return refused(json!({ "error": error, "error_type": "validation" }).to_string());
    }
    Ok(Json(json!({
        "object": "text_completion", "id": "", "created": 1, "model": NAME, "system_fingerprint": "3.3.4-native",
        "choices": [{ "index": 0, "text": " a", "logprobs": null, "finish_reason": "length" }],
        "usage": { "prompt_tokens": 64, "completion_tokens": 1, "total_tokens": 65 },
    })))
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_refused_as_a_server_of_every_kind() {
    let router = Router::new()
        .route("/v1/models", get(models))
        .route("/info", get(info))
        .route("/v1/completions", post(complete));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    for (kind, reason) in [
        (ServedKind::Openai, "TGI also with `--enable-prefill-logprobs`); serve the model with vLLM, SGLang"),
        (ServedKind::Sglang, "it is no SGLang: it has neither `/model_info` nor `/get_model_info`"),
        (ServedKind::Vllm, "it is no vLLM: it has no `/version`"),
        (ServedKind::PdrAudit, "does not have the model"),
    ] {
        let said = opening_fault(kind, NAME, &url, |_| ()).await;
        assert!(said.contains(reason), "{kind}: {said}");
    }
}
