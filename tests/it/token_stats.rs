//! `POST /v1/token-stats` through the front door.

use crate::common::app::{App, GOLDEN, REFERENCE, TINY};
use crate::common::client::send;
use crate::common::goldens::{STATS, expected, numbers};
use crate::common::keys::{Keys, SCORING};
use pdr_audit::access::{ClientLimits, KeyScope};
use reqwest::Method;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

const PATH: &str = "/v1/token-stats";

/// The ids of every golden text within the context, with the statistics of the reference by column.
fn golden_sequences() -> (Vec<Value>, Vec<[Vec<f64>; 4]>) {
    let golden = expected(GOLDEN);
    let context = golden["context"].as_u64().unwrap() as usize;
    let fits = |text: &&Value| (2..=context).contains(&text["ids"].as_array().unwrap().len());
    let texts: Vec<&Value> = golden["texts"].as_array().unwrap().iter().filter(fits).collect();
    let variance = |sigma: &Value| numbers(sigma).iter().map(|sigma| sigma * sigma).collect();
    let columns = |text: &&Value| {
        let tokens = &text["tokens"];
        [numbers(&tokens["logp"]), numbers(&tokens["mu"]), variance(&tokens["sigma"]), numbers(&tokens["top1"])]
    };
    (texts.iter().map(|text| text["ids"].clone()).collect(), texts.iter().map(columns).collect())
}

/// The statistics of the answer by sequence and column.
fn columns(answer: &Value) -> Vec<[Vec<f64>; 4]> {
    let sequences = answer["sequences"].as_array().expect("the sequences");
    sequences.iter().map(|stats| ["lp", "mu", "var", "max_lp"].map(|name| numbers(&stats[name]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sequences_get_the_statistics_of_the_reference() {
    let app = App::start().await;
    let (sequences, want) = golden_sequences();
    let answer = app.post(PATH, &json!({ "sequences": sequences })).await.ok();
    let got = columns(&answer);
    assert_eq!(got.len(), want.len());
    let (absolute, relative) = STATS;
    let mut compared = 0;
    for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() <= absolute + relative * want.abs(), "{got} but the reference has {want}");
            compared += 1;
        }
    }
    assert!(compared > 2000, "{compared}");
    assert_eq!(answer["usage"]["tokens"], got.iter().map(|[lp, ..]| lp.len()).sum::<usize>());
    assert_eq!(answer["model"]["id"], TINY);
    assert_eq!(answer["context"], expected(GOLDEN)["context"]);
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_file_has_the_bits_of_the_json() {
    let app = App::start().await;
    let (mut sequences, _) = golden_sequences();
    // Too short for statistics, and the same as another.
    sequences.extend([json!([7]), json!([]), sequences[0].clone()]);
    let body = json!({ "sequences": sequences });
    let json = app.post(PATH, &body).await.ok();
    let binary = send(app.request(Method::POST, PATH).header("accept", "application/octet-stream").json(&body)).await;
    assert_eq!((binary.status, binary.header("content-type")), (200, "application/octet-stream"));
    assert_eq!(binary.header("vary"), "accept");
    let file = SafeTensors::deserialize(&binary.body).unwrap();
    let (_, header) = SafeTensors::read_metadata(&binary.body).unwrap();
    let served: Value = serde_json::from_str(&header.metadata().as_ref().unwrap()["served"]).unwrap();
    for member in ["model", "identity", "context", "vocab_size"] {
        assert_eq!(served[member], json[member]);
    }
    assert_eq!(served["usage"]["tokens"], json["usage"]["tokens"]);
    let lengths = file.tensor("lengths").unwrap();
    assert_eq!(lengths.dtype(), Dtype::U32);
    let lengths: Vec<usize> = lengths.data().as_chunks().0.iter().map(|n| u32::from_le_bytes(*n) as usize).collect();
    let stats = file.tensor("stats").unwrap();
    assert_eq!((stats.dtype(), stats.shape()), (Dtype::F64, &[lengths.iter().sum(), 4][..]));
    let numbers: Vec<f64> = stats.data().as_chunks().0.iter().map(|n| f64::from_le_bytes(*n)).collect();
    let mut rows = numbers.chunks(4);
    for ([lp, mu, var, max_lp], length) in columns(&json).into_iter().zip(lengths) {
        assert_eq!(lp.len(), length);
        for token in 0..length {
            let row: Vec<u64> = rows.next().unwrap().iter().map(|number| number.to_bits()).collect();
            assert_eq!(row, [lp[token], mu[token], var[token], max_lp[token]].map(f64::to_bits));
        }
    }
    assert!(rows.next().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_sequences_describes_the_model() {
    let app = App::start().await;
    let answer = app.post(PATH, &json!({ "model": REFERENCE, "sequences": [] })).await.ok();
    assert_eq!((&answer["model"]["id"], &answer["sequences"]), (&json!(REFERENCE), &json!([])));
    assert!(answer["identity"].as_str().is_some_and(|identity| identity.contains("sha256:")), "{answer}");
    assert!(answer["context"].as_u64() > Some(0) && answer["vocab_size"].as_u64() > Some(0));
    assert_eq!(answer["usage"], json!({ "tokens": 0, "forward_passes": 0, "cached_passes": 0 }));
    let again = json!({ "model": REFERENCE, "sequences": [[1, 2]], "identity": answer["identity"] });
    app.post(PATH, &again).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_name_their_fault() {
    let app = App::with(|settings| settings.limits.inputs = 3).await;
    let ask = |body: Value| {
        let app = &app;
        async move { app.post(PATH, &body).await }
    };
    let refused = ask(json!({ "sequences": [[1, 2]], "identity": "another" })).await.problem(409);
    let detail = refused["detail"].as_str().unwrap();
    assert!(detail.contains(TINY) && detail.ends_with("not `another`"), "{detail}");
    assert_eq!(ask(json!({ "sequences": [[1], [2, 99_999, 3]] })).await.pointers(), ["/sequences/1/1"]);
    assert_eq!(ask(json!({ "sequences": [[1, -2]], "identity": 3 })).await.pointers(), ["/sequences/0/1", "/identity"]);
    assert_eq!(ask(json!({ "sequences": "1, 2" })).await.pointers(), ["/sequences"]);
    assert_eq!(ask(json!({ "sequences": [[1, 2.5]] })).await.pointers(), ["/sequences/0/1"]);
    ask(json!({ "inputs": ["text"] })).await.problem(422);
    let refused = ask(json!({ "sequences": [[1], [2], [3], [4]] })).await.problem(413);
    assert!(refused["detail"].as_str().unwrap().contains("there are 4 sequences; the limit `limits.inputs` is 3"));
    let long = vec![1; 100_000];
    let refused = ask(json!({ "sequences": [long] })).await.problem(413);
    assert!(refused["detail"].as_str().unwrap().contains("context"), "{refused}");
    ask(json!({ "model": "nothing", "sequences": [] })).await.problem(404);
    let many = json!({ "sequences": vec![vec![1; 700_000]; 2] });
    let refused = app.post(PATH, &many).await.problem(413);
    assert!(refused["detail"].as_str().unwrap().contains("1400000 tokens may take some 140000000 bytes"), "{refused}");
    let neither = app.request(Method::POST, PATH).header("accept", "text/csv").json(&json!({ "sequences": [] }));
    assert!(send(neither).await.problem(406)["detail"].as_str().unwrap().contains("application/octet-stream"));
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_must_be_allowed_to_score_and_pays_for_the_tokens() {
    let mut keys = Keys::new();
    let auditor = keys.add("auditor", &[KeyScope::Audit], ClientLimits::default());
    let limits = ClientLimits { tokens_per_minute: Some(20), ..ClientLimits::default() };
    let scorer = keys.add("scorer", SCORING, limits);
    let app = keys.app().await;
    let body = json!({ "sequences": [(1..=41).collect::<Vec<u32>>()] });
    app.with_key(&auditor).post(PATH, &body).await.problem(403);
    app.with_key(&scorer).post(PATH, &body).await.ok();
    app.with_key(&scorer).post(PATH, &body).await.problem(429);
}
