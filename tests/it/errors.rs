//! Every way to ask wrongly has a clear answer, and none is a panic.

use crate::common::app::App;
use crate::common::client::{Answer, Client, send};
use pdr_audit::config::ByteSize;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const JSON: Option<&str> = Some("application/json");

async fn post(app: &Client, path: &str, body: impl Into<Vec<u8>>) -> Answer {
    app.post_bytes(path, JSON, body.into()).await
}

/// Sends bytes as they are, and reads until the service closes the connection or has been silent for a while.
async fn raw(app: &Client, bytes: &[u8]) -> String {
    let (address, bytes) = (app.address, bytes.to_vec());
    let talk = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut answer = Vec::new();
        // A timeout is an end as good as any: the answer is checked next.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    };
    tokio::task::spawn_blocking(talk).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_are_no_json_are_refused_with_their_place() {
    let app = App::start().await;
    let cases: [(&[u8], &str); 12] = [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"{\"inputs\": ", "line 1 column 11"),
        (b"{\n  \"inputs\": \"a b\",,\n}", "line 2"),
        (b"{'inputs': 'a b'}", "line 1 column 2"),
        (b"{\"inputs\": \"a b\"} {}", "goes on after its JSON"),
        (b"{\"inputs\": \"a b\"}\0", "goes on after its JSON"),
        (b"{\"inputs\": \"a b\", \"model\": 1e999}", "out of range"),
        (b"{\"inputs\": \"a b\", \"methods\": [{\"name\": \"min_k\", \"k\": NaN}]}", "line 1 column"),
        (b"{\"inputs\":\n\"a \xff b\"}", "not UTF-8 at line 2 column 4"),
        (b"{\"inputs\": \"\\ud800\"}", "line 1 column"),
        (b"{\"inputs\": \"a\nb\"}", "control character"),
    ];
    for (body, words) in cases {
        let problem = post(&app, "/v1/score", body).await.problem(400);
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{:?}: {detail}", String::from_utf8_lossy(body));
    }
    post(&app, "/v1/audits", "").await.problem(400);
    post(&app, "/v1/audits", "{\"samples\": [").await.problem(400);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_type_and_unknown_fields_are_pointed_at() {
    let app = App::start().await;
    let cases = [
        ("[]", "", "expected"),
        ("3", "", "expected"),
        ("{}", "", "missing field `inputs`"),
        (r#"{"inputs": 3}"#, "/inputs", "a text, or a list of texts"),
        (r#"{"inputs": {"text": "a"}}"#, "/inputs", "a text, or a list of texts"),
        (r#"{"inputs": ["a b", 3]}"#, "/inputs/1", "expected a text, or an object with `text`"),
        (r#"{"inputs": ["a b", ["c"]]}"#, "/inputs/1", "expected a text, or an object with `text`"),
        (r#"{"inputs": [{"id": "x"}]}"#, "/inputs/0", "missing field `text`"),
        (r#"{"inputs": [{"text": "a", "id": 7}]}"#, "/inputs/0/id", "expected a string"),
        (r#"{"inputs": [{"text": "a", "neighbours": ["b"]}]}"#, "/inputs/0/neighbours", "unknown field"),
        (r#"{"inputs": "a b", "input": "c"}"#, "/input", "unknown field `input`"),
        (r#"{"inputs": "a b", "inputs": "c"}"#, "", "duplicate field `inputs`"),
        (r#"{"inputs": "a b", "model": 5}"#, "/model", "expected a string"),
        (r#"{"inputs": "a b", "overflow": "windows"}"#, "/overflow", "unknown variant `windows`"),
        (r#"{"inputs": "a b", "details": "tokens"}"#, "/details", "expected a sequence"),
        (r#"{"inputs": "a b", "methods": "loss"}"#, "/methods", "expected a sequence"),
        (r#"{"inputs": "a b", "methods": ["loss", 4]}"#, "/methods/1", "expected a method"),
        (
            r#"{"inputs": "a b", "methods": [{"name": "min_k", "k": "x"}]}"#,
            "/methods/0/k",
            "expected a number, or a list of numbers",
        ),
        (
            r#"{"inputs": "a b", "methods": [{"name": "loss", "pdr": {"decay": "linear", "alpha": 1, "select": "now"}}]}"#,
            "/methods/0/pdr/select",
            "unknown variant `now`",
        ),
    ];
    let deep = format!("{{\"inputs\": {}{}}}", "[".repeat(5000), "]".repeat(5000));
    let deep = (deep.as_str(), "/inputs/0", "expected a text");
    for (body, pointer, words) in cases.into_iter().chain([deep]) {
        let answer = post(&app, "/v1/score", body).await;
        assert_eq!(answer.pointers(), [pointer], "{body}");
        let detail = answer.json()["errors"][0]["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains(words), "{body}: {detail}");
    }
    for (body, pointer) in [
        (json!({ "samples": ["a text"] }), "/samples/0"),
        (json!({ "samples": [{ "text": "a", "label": "yes" }] }), "/samples/0/label"),
        (json!({ "samples": [{ "text": "a", "label": [1] }] }), "/samples/0/label"),
        (json!({ "samples": [{ "text": "a", "input": "b" }] }), "/samples/0"),
        (json!({ "samples": [{ "text": "a", "group": 1 }] }), "/samples/0/group"),
        (json!({ "corpus": "sha256:0" }), "/corpus"),
        (json!({ "samples": [{ "text": "a" }], "metrics": { "bootstrap": 1000 } }), "/metrics/bootstrap"),
        (json!({ "samples": [{ "text": "a" }], "metrics": { "fpr_targets": 0.1 } }), "/metrics/fpr_targets"),
    ] {
        assert_eq!(app.post("/v1/audits", &body).await.pointers(), [pointer], "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_meaning_are_all_reported_at_once() {
    let app = App::start().await;
    let pdr = |decay: &str, alpha: f64| json!({ "name": "loss", "pdr": { "decay": decay, "alpha": alpha } });
    let body = json!({
        "inputs": [],
        "methods": ["recall", { "name": "min_k", "k": 0.0 }, { "name": "min_k", "k": 1.5 }, { "name": "loss", "k": 0.2 },
            pdr("linear", 1.5), pdr("exponential", -0.1), pdr("polynomial", 1e308), pdr("cubic", 1.0), "zlib", "zlib"],
        "details": ["tokens", "more"],
    });
    let answer = app.post("/v1/score", &body).await;
    let pointers = answer.pointers();
    for pointer in [
        "/inputs",
        "/methods/0",
        "/methods/1/k",
        "/methods/2/k",
        "/methods/3/k",
        "/methods/4/pdr/alpha",
        "/methods/5/pdr/alpha",
        "/methods/7/pdr/decay",
        "/methods/9",
        "/details/1",
    ] {
        assert!(pointers.iter().any(|found| found == pointer), "{pointer} in {pointers:?}");
    }
    assert!(answer.json()["detail"].as_str().unwrap().contains("faults, the first: /inputs"));
    let many = vec!["loss"; 257];
    let answer = app.post("/v1/score", &json!({ "inputs": "a b", "methods": many })).await;
    assert_eq!(answer.pointers(), ["/methods"]);
    assert!(answer.json()["detail"].as_str().unwrap().contains("at most 256"));
    assert_eq!(app.post("/v1/score", &json!({ "inputs": "a b", "methods": [] })).await.pointers(), ["/methods"]);
    assert_eq!(app.post("/v1/score", &json!({ "inputs": [] })).await.pointers(), ["/inputs"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_type_hide_no_faults_of_meaning() {
    let app = App::start().await;
    let methods = json!([
        { "name": "loss", "pdr": { "decay": "linear", "alpha": 1.5 } },
        { "name": "min_k", "k": "x" },
        7,
        { "name": "min_k", "k": 1e300 },
        { "name": "min_k", "ks": 0.5 }
    ]);
    let of_methods = ["/methods/1/k", "/methods/2", "/methods/4/ks", "/methods/0/pdr/alpha", "/methods/3/k"];
    let body = json!({ "inputs": [], "methods": methods, "details": ["tokens", 3], "overflow": "windows" });
    let answer = app.post("/v1/score", &body).await;
    assert_eq!(answer.pointers(), [&["/inputs"], &of_methods[..], &["/details/1", "/overflow"]].concat());
    assert!(!answer.text().contains("at line"), "{}", answer.text());
    let body = json!({ "samples": [{ "text": "a", "label": 7 }], "methods": methods, "metrics": { "roc": 1 },
        "overflow": 1, "name": 2 });
    let pointers = app.post("/v1/audits", &body).await.pointers();
    let around = [&["/name", "/samples/0/label"], &of_methods[..], &["/overflow", "/metrics/roc"]].concat();
    assert_eq!(pointers, around);
    // A number that no type holds is a fault of its place.
    let body = r#"{"inputs": "a b", "methods": [{"name": "min_k", "k": 1e999}]}"#;
    assert_eq!(post(&app, "/v1/score", body).await.pointers(), ["/methods/0/k"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_samples_are_pointed_at() {
    let app = App::start().await;
    let sample = |label: Value| json!({ "text": "a b c", "label": label });
    let cases = [
        (json!([]), json!({}), vec!["/samples"], "empty"),
        (
            json!([sample(json!(0)), sample(json!(2)), sample(json!(0.5)), sample(json!(-1)), sample(json!(1))]),
            json!({}),
            vec!["/samples/1/label", "/samples/2/label", "/samples/3/label"],
            "must be 0 or 1",
        ),
        (json!([sample(json!(1)), sample(json!(1))]), json!({}), vec!["/samples"], "2 members and 0 non-members"),
        (json!([sample(json!(0))]), json!({}), vec!["/samples"], "0 members and 1 non-member"),
        (
            json!([sample(json!(1)), sample(Value::Null), sample(json!(0))]),
            json!({}),
            vec!["/samples"],
            "2 of 3 samples have a label, and /samples/1 has none",
        ),
        (
            json!([sample(json!(1)), sample(json!(0))]),
            json!({ "fpr_targets": [0.5, -0.1, 1.5, 1e300] }),
            vec!["/metrics/fpr_targets/1", "/metrics/fpr_targets/2", "/metrics/fpr_targets/3"],
            "outside [0, 1]",
        ),
        (
            json!([sample(json!(1)), sample(json!(0))]),
            json!({ "fpr_targets": [] }),
            vec!["/metrics/fpr_targets"],
            "1 to 32",
        ),
        (
            json!([sample(json!(1)), sample(json!(0))]),
            json!({ "fpr_targets": vec![0.5; 33] }),
            vec!["/metrics/fpr_targets"],
            "1 to 32",
        ),
    ];
    for (samples, metrics, pointers, words) in cases {
        let body = json!({ "samples": samples, "metrics": metrics });
        let answer = app.post("/v1/audits", &body).await;
        assert_eq!(answer.pointers(), pointers, "{body}");
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    let many: Vec<Value> = (0..1000).map(|_| sample(json!(7))).collect();
    let problem = app.post("/v1/audits", &json!({ "samples": many })).await.problem(422);
    assert_eq!(problem["errors"].as_array().unwrap().len(), 100);
    assert!(problem["detail"].as_str().unwrap().starts_with("1000 faults"));
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_named() {
    let app = App::with(|settings| {
        settings.server.body_limit = ByteSize::b(2_000_000);
        settings.engine.max_queue_tokens = Some(100);
    })
    .await;
    let detail = |answer: Answer| answer.problem(413)["detail"].as_str().unwrap().to_owned();
    let many = app.post("/v1/score", &json!({ "inputs": vec!["a b"; 100_000] })).await;
    assert!(detail(many).contains("`limits.inputs` is 10000"));
    let long = format!("{{\"inputs\": \"{}\"}}", "a".repeat(3_000_000));
    let long = detail(post(&app, "/v1/score", long).await);
    assert!(long.contains("`server.body_limit` of 2000000 bytes"), "{long}");
    let inputs: Vec<String> = (0..50).map(|at| format!("{at} is more than the queue may hold")).collect();
    let tokens = detail(app.post("/v1/score", &json!({ "inputs": inputs })).await);
    assert!(tokens.contains("`engine.max_queue_tokens` is 100") && tokens.contains("/v1/audits"), "{tokens}");
    // An audit of the same texts is fed in as room comes up.
    let samples: Vec<Value> = inputs.iter().map(|text| json!({ "text": text })).collect();
    assert_eq!(app.audit(&json!({ "samples": samples })).await.ok()["status"], "succeeded");
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_over_the_limit_are_refused_however_they_come() {
    let app = App::with(|settings| settings.server.body_limit = ByteSize::b(100)).await;
    let head = "POST /v1/score HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n96\r\n{}\r\n0\r\n\r\n", "a".repeat(150));
    let waiting = format!("{head}content-length: 99999999\r\nexpect: 100-continue\r\n\r\n");
    let endless =
        format!("{head}transfer-encoding: chunked\r\n\r\n{}", format!("32\r\n{}\r\n", "a".repeat(50)).repeat(20));
    for request in [chunked, waiting, endless] {
        let answer = raw(&app, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("server.body_limit"), "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn time_is_bounded() {
    let app = App::with(|settings| {
        settings.server.request_timeout = Duration::from_millis(200);
        settings.engine.cache = ByteSize::b(0);
    })
    .await;
    let head = "POST /v1/score HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";
    let answer = raw(&app, format!("{head}content-length: 100\r\n\r\n{{").as_bytes()).await;
    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("server.request_timeout"), "{answer}");

    // Several times what can be done in that time.
    let inputs: Vec<String> = (0..10_000).map(|at| format!("{at} of many different texts; ").repeat(4)).collect();
    let problem = app.post("/v1/score", &json!({ "inputs": inputs })).await.problem(504);
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("server.request_timeout") && detail.contains("/v1/audits"), "{detail}");
    app.assert_nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_by_its_header_is_refused() {
    let app = App::start().await;
    let body = br#"{"inputs": "a b c"}"#;
    for content_type in [None, Some("text/plain"), Some("application/x-www-form-urlencoded"), Some("application/jsonp")]
    {
        let problem = app.post_bytes("/v1/score", content_type, body.to_vec()).await.problem(415);
        assert!(problem["detail"].as_str().unwrap().contains("application/json"));
    }
    for content_type in ["application/json; charset=utf-8", "Application/JSON"] {
        app.post_bytes("/v1/score", Some(content_type), body.to_vec()).await.ok();
    }
    let packed = app.request(Method::POST, "/v1/score").header("content-type", "application/json");
    send(packed.header("content-encoding", "gzip").body(body.to_vec())).await.problem(415);
}

#[tokio::test(flavor = "multi_thread")]
async fn models_must_be_configured() {
    let app = App::start().await;
    for (path, body) in [
        ("/v1/score", json!({ "inputs": ["a b"], "model": "pythia", "methods": ["none"] })),
        ("/v1/audits", json!({ "samples": [{ "text": "a b" }], "model": "pythia" })),
    ] {
        let problem = app.post(path, &body).await.problem(404);
        assert!(problem["detail"].as_str().unwrap().contains("configured: tiny, tiny-reference"), "{problem}");
    }
    let app = App::with(|settings| settings.engine.default_model = None).await;
    let answer = app.post("/v1/score", &json!({ "inputs": ["a b"], "methods": ["none"] })).await;
    assert_eq!(answer.pointers(), ["/model", "/methods/0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn routes_and_methods_that_do_not_exist_are_problems() {
    let app = App::start().await;
    for path in ["/v1", "/v1/nothing", "/v1/score/", "/docs/none.js", "/v1/reports", "/%ff", "//"] {
        assert_eq!(app.get(path).await.problem(404)["instance"], path);
    }
    for (method, path, allow) in [
        (Method::GET, "/v1/score", "POST"),
        (Method::PUT, "/v1/audits", "POST,GET,HEAD"),
        (Method::POST, "/v1/models", "GET,HEAD"),
        (Method::from_bytes(b"BREW").unwrap(), "/livez", "GET,HEAD"),
    ] {
        let answer = send(app.request(method, path)).await;
        answer.problem(405);
        let mut allowed: Vec<&str> = answer.header("allow").split(',').collect();
        let mut wanted: Vec<&str> = allow.split(',').collect();
        allowed.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(allowed, wanted, "{path}");
    }
    let unknown = uuid::Uuid::now_v7();
    for id in [unknown.to_string(), "1".into(), "%ff".into(), "..%2f".into()] {
        app.get(&format!("/v1/audits/{id}")).await.problem(404);
        app.get(&format!("/v1/audits/{id}/scores")).await.problem(404);
        app.delete(&format!("/v1/audits/{id}")).await.problem(404);
        send(app.request(Method::POST, &format!("/v1/audits/{id}/cancel"))).await.problem(404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_query_parameters_are_refused_by_name() {
    let app = App::start().await;
    for (path, names) in [
        ("/?a", vec!["a"]),
        ("/v1/models?id=tiny", vec!["id"]),
        ("/v1/audits?page=2&limit=7&Status=queued", vec!["page", "Status"]),
        ("/v1/audits?limit=7&limit=8", vec!["limit"]),
        ("/v1/audits?limit=0&status=done&after=1", vec!["limit", "status", "after"]),
    ] {
        let problem = app.get(path).await.problem(422);
        let errors = problem["errors"].as_array().unwrap().iter();
        let found: Vec<&str> = errors.map(|error| error["parameter"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{path}");
    }
    assert_eq!(app.post("/v1/score?model=tiny", &json!({ "inputs": "a b" })).await.pointers(), [""]);
    app.get("/nothing?a").await.problem(404);
    // Those who probe and scrape add what they like.
    app.get("/readyz?verbose").await.ok();
    app.get("/v1/audits?limit=7&status=queued&model=tiny").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn types_that_cannot_be_served_are_refused() {
    let app = App::start().await;
    let ask = |path: &str, accept: &'static str| send(app.request(Method::GET, path).header("accept", accept));
    for accept in ["*/*", "application/*", "application/json, text/html", "text/html, */*;q=0.1"] {
        ask("/v1/models", accept).await.ok();
    }
    for accept in ["text/html", "text/*, application/xml", "application/json;q=0"] {
        let problem = ask("/v1/models", accept).await.problem(406);
        assert!(problem["detail"].as_str().unwrap().contains("application/json"), "{problem}");
    }
    // A probe is answered whatever it takes.
    ask("/readyz", "text/plain").await.ok();
    let id = app.audit(&json!({ "samples": [{ "text": "a b c" }] })).await.ok()["id"].as_str().unwrap().to_owned();
    let scores = format!("/v1/audits/{id}/scores");
    let problem = ask(&scores, "application/json").await.problem(406);
    assert!(problem["detail"].as_str().unwrap().contains("application/x-ndjson, text/csv"), "{problem}");
    for accept in ["application/*", "text/csv", "*/*"] {
        assert_eq!(ask(&scores, accept).await.status, 200, "{accept}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_id_is_the_clients_where_it_is_sane() {
    let app = App::start().await;
    let ask = |id: &'static str| send(app.request(Method::GET, "/nowhere").header("x-request-id", id));
    assert_eq!(ask("client-1:a/b").await.problem(404)["request_id"], "client-1:a/b");
    let long: &'static str = "x".repeat(129).leak();
    for id in ["", "with space", long] {
        let answer = ask(id).await;
        answer.problem(404);
        assert!(uuid::Uuid::parse_str(answer.header("x-request-id")).is_ok(), "{id:?}");
    }
    assert!(!app.get("/livez").await.header("x-request-id").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_are_no_objects_and_numbers_no_names() {
    let app = App::start().await;
    for (body, pointer) in [
        (json!(["tiny", "a b", ["loss"], null, null]), ""),
        (
            json!({ "inputs": "a b", "methods": [{ "name": "loss", "pdr": ["linear", 0.5, null, null, null, false] }] }),
            "/methods/0/pdr",
        ),
        (
            json!({ "inputs": "a b", "methods": [{ "name": "neighbor", "generator": ["bert", 2] }] }),
            "/methods/0/generator",
        ),
        (
            json!({ "inputs": "a b", "methods": [{ "name": "recall", "prefix": ["c"], "align": 1 }] }),
            "/methods/0/align",
        ),
        (json!({ "inputs": "a b", "overflow": 1 }), "/overflow"),
        (json!({ "inputs": "a b", "overflow": { "error": null } }), "/overflow"),
    ] {
        assert_eq!(app.post("/v1/score", &body).await.pointers(), [pointer], "{body}");
    }
    for (body, pointer) in [
        (json!({ "samples": [["id", "a b c", 1, null, null]] }), "/samples/0"),
        (json!({ "samples": [{ "text": "a b" }], "metrics": [[0.05], true] }), "/metrics"),
        (json!({ "samples": [{ "text": "a b" }], "metrics": { "bootstrap": [100, 1, 0.5] } }), "/metrics/bootstrap"),
    ] {
        assert_eq!(app.post("/v1/audits", &body).await.pointers(), [pointer], "{body}");
    }
}
