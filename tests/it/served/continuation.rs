//! Continuations by models that other processes run.

use super::fake_server::{FakeServer, NAME};
use super::{FRONT, Spoiled, engine, served, silent, until};
use crate::common::app::{GOLDEN, TINY};
use crate::continuation::{bound, started};
use lm::models::{Continuation, Ending};
use pdr_audit::config::{DeviceChoice, ServedKind, Settings};
use pdr_audit::scorer::Scorer;
use serde_json::{Value, json};
use std::sync::Arc;

async fn front(kind: ServedKind, name: &str, url: String) -> Scorer {
    let mut settings = Settings::default();
    served(&mut settings, kind, name, GOLDEN, &[url]);
    settings.engine.device = DeviceChoice::Cpu;
    started(&settings).await
}

async fn vllm(server: &FakeServer) -> Scorer {
    front(ServedKind::Vllm, NAME, format!("http://{}", server.address)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn vllm_continues_by_ids_in_one_request() {
    let server = FakeServer::of(GOLDEN).await;
    let scorer = vllm(&server).await;
    let bound = bound(&scorer, FRONT).await;
    let draft: Arc<[u32]> = [7, 7, 7].into();
    let continuation = scorer.continue_ids(&bound, &[5, 10], &draft, 4).await.unwrap();
    assert_eq!(continuation, Continuation { ids: vec![11, 12, 13, 14], ended: Ending::Length });
    let asked = server.state.lock().unwrap().continued.clone();
    assert_eq!(asked.len(), 1);
    // The golden's configuration has 0 as the end of a text.
    for (key, value) in [
        ("prompt", json!([[5, 10]])),
        ("max_tokens", json!(4)),
        ("temperature", json!(0.0)),
        ("repetition_penalty", json!(1.0)),
        ("stop_token_ids", json!([0])),
        ("return_token_ids", json!(true)),
    ] {
        assert_eq!(asked[0][key], value, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_does_not_make_sense_is_not_taken() {
    let server = FakeServer::of(GOLDEN).await;
    let scorer = vllm(&server).await;
    let bound = bound(&scorer, FRONT).await;
    let spoils: [Spoiled; 3] = [
        (|answer| answer["choices"][0]["token_ids"] = Value::Null, "it has no `token_ids`"),
        (|answer| answer["choices"][0]["token_ids"] = json!([11, 12]), "2 token ids where 3 were wanted"),
        (|answer| answer["choices"] = json!({}), "cannot be read"),
    ];
    for (spoil, reason) in spoils {
        server.state.lock().unwrap().spoil = spoil;
        let draft: Arc<[u32]> = [].into();
        let asked = scorer.continue_ids(&bound, &[10], &draft, 3);
        let repaired = async {
            let is_said = || silent(scorer.engine())[0].as_ref().is_some_and(|said| said.contains(reason));
            until(reason, is_said).await;
            server.state.lock().unwrap().spoil = |_| ();
        };
        let (continuation, ()) = tokio::join!(asked, repaired);
        assert_eq!(continuation.unwrap().ids, [11, 12, 13]);
        until("the server answers again", || silent(scorer.engine())[0].is_none()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_of_its_kind_behind_the_service_continues_nothing() {
    let engine = engine().await;
    let scorer = front(ServedKind::PdrAudit, TINY, format!("http://{}", engine.address)).await;
    let bound = bound(&scorer, FRONT).await;
    let draft: Arc<[u32]> = [].into();
    let refused = scorer.continue_ids(&bound, &[10], &draft, 3).await.unwrap_err();
    let detail = "model `front` cannot continue the text: its server gives statistics alone; run it \
                  here or behind vLLM";
    assert_eq!(refused.to_string(), detail);
    assert!(!refused.is_retryable());
}
