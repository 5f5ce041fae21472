//! Authentication, the access record, and the quota of a key.

use crate::common::client::{Answer, Client, send};
use crate::common::keys::{Keys, SCORING, clients};
use pdr_audit::access::{ClientLimits, KeyScope};
use pdr_audit::config::{LoadPolicy, ModelSettings, ModelSource};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use time::{Duration, OffsetDateTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn text(number: usize) -> Value {
    json!({ "inputs": format!("Text number {number} of a client."), "methods": ["loss"] })
}

fn samples() -> Value {
    let sample = |number: usize| json!({ "text": format!("Sample {number} of an audit."), "label": number % 2 });
    (0..8).map(sample).collect()
}

fn id(job: &Value) -> &str {
    job["id"].as_str().expect("an id")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_needed_and_must_be_right() {
    let mut keys = Keys::new();
    let secret = keys.add("alice", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let wrong = ["pdr_0", "", &secret[..67]].map(|key| app.with_key(key));
    for client in std::iter::once(&*app as &Client).chain(&wrong) {
        let answer = client.post("/v1/score", &text(0)).await;
        answer.problem(401);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    app.with_key(&secret).post("/v1/score", &text(0)).await.ok();
    for scheme in ["Basic", "bearerx"] {
        let request = app.request(Method::GET, "/v1/models").header("authorization", format!("{scheme} {secret}"));
        send(request).await.problem(401);
    }
    let lower = app.request(Method::GET, "/v1/models").header("authorization", format!("bearer {secret}"));
    assert_eq!(send(lower).await.status, 200);
    // Paths that need no key.
    for path in ["/livez", "/readyz", "/openapi.json", "/docs", "/docs/", "/"] {
        assert_eq!(app.get(path).await.status, 200, "{path}");
    }
    app.get("/metrics").await.problem(404);
    app.get("/v1/nothing").await.problem(404);
}

/// Every route of the document that is not for everybody, with whatever ids.
#[tokio::test(flavor = "multi_thread")]
async fn no_route_is_left_open() {
    let mut keys = Keys::new();
    let nothing = keys.add("nobody", &[KeyScope::Score], ClientLimits::default());
    let app = keys.app().await;
    let document = app.get("/openapi.json").await.ok();
    let mut routes = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let filled =
            path.replace("{id}", "01a20295-b1f8-7331-b7f3-b1ed78fe0ef8").replace("{other}", "x").replace("{name}", "x");
        for (method, operation) in item.as_object().unwrap() {
            let Some(security) = operation["security"].as_array() else {
                assert!(!path.starts_with("/v1/"), "{method} {path}");
                continue;
            };
            let method: Method = method.to_uppercase().parse().unwrap();
            let request = || app.request(method.clone(), &filled);
            assert_eq!(send(request()).await.status, 401, "{method} {path}");
            let scopes = security.iter().find_map(|one| one["key"].as_array()).unwrap();
            let is_allowed = scopes.is_empty() || scopes.contains(&json!("score"));
            let status = send(request().bearer_auth(&nothing)).await.status;
            assert_eq!(status == 403, !is_allowed, "{method} {path}: {status}");
            routes += 1;
        }
    }
    assert!(routes > 30, "{routes}");
    // Whatever the document says, these are for administrators.
    let auditor = keys.add("auditor", SCORING, ClientLimits::default());
    app.entry.reload();
    for (method, path) in [
        (Method::POST, "/v1/models/tiny/load"),
        (Method::POST, "/v1/models/tiny/unload"),
        (Method::DELETE, "/v1/models/tiny/adapters/x"),
        (Method::POST, "/v1/finetunes"),
        (Method::GET, "/v1/finetunes"),
    ] {
        send(app.request(method, path).bearer_auth(&auditor)).await.problem(403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_caches_do_not_tell_what_another_key_has_scored() {
    let (_keys, _app, [alice, bob]) = clients(["alice", "bob"]).await;
    let passes = async |client: &Client| {
        let usage = client.score(&text(1)).await["usage"].clone();
        (usage["forward_passes"].as_u64().unwrap(), usage["cached_passes"].as_u64().unwrap())
    };
    assert_eq!((passes(&alice).await, passes(&alice).await), ((1, 0), (0, 1)));
    assert_eq!((passes(&bob).await, passes(&bob).await), ((1, 0), (0, 1)));
    // A job finds what its owner has scored, and no more.
    let audit = async |client: &Client| {
        let body = json!({ "samples": [{ "text": "Text number 1 of a client.", "label": 1 }, { "text": "another", "label": 0 }],
            "methods": ["loss"], "control": null });
        client.audit(&body).await.ok()["results"]["usage"]["cached_passes"].as_u64().unwrap()
    };
    assert_eq!(audit(&alice).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn reasons_of_failures_are_for_administrators() {
    let mut keys = Keys::new();
    let auditor = keys.add("auditor", SCORING, ClientLimits::default());
    let admin = keys.add("admin", &[KeyScope::Admin], ClientLimits::default());
    let empty = keys.directory.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let app = keys
        .app_with(|settings| {
            let source = ModelSource { text: empty.display().to_string(), path: empty.clone() };
            let broken =
                ModelSettings { id: "broken".to_owned(), source, load: LoadPolicy::Lazy, ..ModelSettings::default() };
            settings.engine.default_model = Some(settings.models[0].id.clone());
            settings.models.push(broken);
        })
        .await;
    send(app.request(Method::POST, "/v1/models/broken/load").bearer_auth(&admin)).await.problem(503);
    let reason = async |key: &str| {
        let listed = app.with_key(key).get("/v1/models").await.ok();
        let entry = listed["models"].as_array().unwrap().iter().find(|entry| entry["id"] == "broken").cloned().unwrap();
        assert_eq!(entry["state"], "failed");
        entry["reason"].as_str().unwrap().to_owned()
    };
    assert!(reason(&admin).await.contains("config.json"), "{}", reason(&admin).await);
    assert_eq!(reason(&auditor).await, "the service's log says why");
    let body = json!({ "model": "broken", "inputs": "text" });
    let refused = app.with_key(&auditor).post("/v1/score", &body).await;
    assert!(!refused.text().contains("config.json"), "{}", refused.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_leaves_the_statistics_of_others() {
    let (_keys, _app, [alice, bob]) = clients(["alice", "bob"]).await;
    let texts: Vec<String> = (0..50).map(|number| format!("Text number {number} of alice.")).collect();
    let body = json!({ "inputs": texts, "methods": ["loss"] });
    assert_eq!(alice.score(&body).await["usage"]["forward_passes"], 50);
    for number in 0..20 {
        let line = json!({ "text": format!("Text number {number} of bob.") }).to_string();
        let dataset =
            bob.request(Method::POST, "/v1/datasets").header("content-type", "application/x-ndjson").body(line);
        let dataset = send(dataset).await.json();
        bob.audit(&json!({ "dataset": dataset["id"], "methods": ["loss"], "control": null })).await.ok();
        assert_eq!(bob.delete(&format!("/v1/datasets/{}", dataset["id"].as_str().unwrap())).await.status, 204);
    }
    assert_eq!(alice.score(&body).await["usage"]["cached_passes"], 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_keys_of_a_client_have_one_quota() {
    let mut keys = Keys::new();
    let limits = ClientLimits { tokens_per_minute: Some(1_000), tokens_per_day: Some(40), ..ClientLimits::default() };
    let limited = keys.add("alice", SCORING, limits);
    let others: Vec<String> = (0..99).map(|_| keys.add("alice", SCORING, ClientLimits::default())).collect();
    let bob = keys.add("bob", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let first = app.with_key(&others[0]).post("/v1/score", &text(0)).await;
    let tokens = first.ok()["usage"]["tokens"].as_u64().unwrap();
    assert_eq!(first.header("ratelimit-policy"), "\"minute\";q=1000;w=60, \"day\";q=40;w=86400");
    let left = format!("\"day\";r={};t={}", 40 - tokens, tokens * 86_400 / 40);
    assert!(first.header("ratelimit").ends_with(&left), "{} and not {left}", first.header("ratelimit"));
    app.with_key(&limited).post("/v1/score", &json!({ "inputs": "word ".repeat(30), "methods": ["loss"] })).await.ok();
    for key in [&limited, &others[0], &others[98]] {
        let refused = app.with_key(key).post("/v1/score", &text(1)).await;
        assert!(refused.problem(429)["detail"].as_str().unwrap().contains("40 tokens a day"), "{}", refused.text());
    }
    let free = app.with_key(&bob).post("/v1/score", &text(1)).await;
    free.ok();
    assert!(free.headers.get("ratelimit").is_none());
    // What is used stays used when the keys are read again, also under other keys.
    keys.file.keys.remove(1);
    keys.write();
    app.entry.reload();
    app.with_key(&others[98]).post("/v1/score", &text(1)).await.problem(429);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_count_when_they_are_submitted() {
    let mut keys = Keys::new();
    let limits = ClientLimits { tokens_per_day: Some(100), ..ClientLimits::default() };
    let alice = keys.add("alice", SCORING, limits);
    let app = keys.app().await;
    let alice = app.with_key(&alice);
    let job = |bytes: usize, methods: &str| json!({ "samples": [{ "text": "word".repeat(bytes / 4) }], "methods": [methods], "control": null });
    let submit = |key: &'static str, body| {
        let request = alice.request(Method::POST, "/v1/audits").header("idempotency-key", key).json(&body);
        send(request)
    };
    let first = submit("one", job(160, "loss")).await;
    assert_eq!(first.status, 202, "{}", first.text());
    assert!(first.header("ratelimit").starts_with("\"day\";r=60;"), "{}", first.header("ratelimit"));
    // The same again is the same job, and one that is refused is none.
    assert_eq!(submit("one", job(160, "loss")).await.json()["id"], first.json()["id"]);
    alice
        .post("/v1/audits", &json!({ "samples": [{ "text": "a" }], "methods": ["loss"], "control": "none" }))
        .await
        .problem(422);
    // The lower-cased text is a pass as well.
    let second = submit("two", job(160, "lowercase")).await;
    assert!(second.header("ratelimit").starts_with("\"day\";r=0;"), "{}", second.header("ratelimit"));
    let refused = submit("three", job(4, "loss")).await;
    assert!(refused.problem(429)["detail"].as_str().unwrap().contains("100 tokens a day"), "{}", refused.text());
    assert_eq!(
        submit("two", job(160, "lowercase")).await.json()["id"],
        second.json()["id"],
        "a known job costs nothing"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_has_as_much_in_the_store_as_it_may() {
    let mut keys = Keys::new();
    // A dataset below has 2 * 18 bytes as lines of JSON.
    let limits = ClientLimits { stored_bytes: Some(110), datasets: Some(2), jobs: Some(1), ..ClientLimits::default() };
    let alice = keys.add("alice", SCORING, limits);
    let bob = keys.add("bob", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let [alice, bob] = [alice, bob].map(|key| app.with_key(&key));
    let upload = |client: &Client, texts: [&str; 2]| {
        let lines: String = texts.map(|text| format!("{{\"text\":\"{text}\"}}\n")).concat();
        send(client.request(Method::POST, "/v1/datasets").header("content-type", "application/x-ndjson").body(lines))
    };
    let first = upload(&alice, ["one___", "two___"]).await;
    assert_eq!((first.status, upload(&alice, ["three_", "four__"]).await.status), (201, 201));
    // The same again takes no room, at the limits as well.
    assert_eq!(upload(&alice, ["one___", "two___"]).await.status, 201);
    let refused = upload(&alice, ["five", "six"]).await;
    let detail = |answer: &Answer| answer.problem(429)["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail(&refused), "this client may have 2 datasets in the store; delete some");
    let dataset = first.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(alice.delete(&format!("/v1/datasets/{dataset}")).await.status, 204);
    let refused = upload(&alice, ["a text that is longer than the rest of the limit", "of bytes of this client"]).await;
    assert_eq!(detail(&refused), "this client may have 110 bytes of samples in the store; delete some");
    assert_eq!(
        alice.get("/v1/datasets").await.json()["datasets"].as_array().unwrap().len(),
        1,
        "nothing is left of it"
    );

    let job = json!({ "samples": [{ "text": "word" }], "methods": ["loss"], "control": null });
    let submitted = alice.audit(&job).await.ok();
    let refused = alice.post("/v1/audits", &job).await;
    assert_eq!(detail(&refused), "this client may have 1 jobs in the store; delete some");
    assert_eq!(alice.delete(&format!("/v1/audits/{}", id(&submitted))).await.status, 204);
    alice.audit(&job).await.ok();
    assert_eq!(upload(&bob, ["one___", "two___"]).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_ends_its_uploads_and_event_streams() {
    let mut keys = Keys::new();
    let alice = keys.add("alice", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let alice = app.with_key(&alice);
    let samples: Vec<Value> =
        (0..20_000).map(|number| json!({ "text": format!("Text {number} of many, {number}.") })).collect();
    let job = alice.post("/v1/audits", &json!({ "samples": samples, "methods": ["loss"] })).await.json();
    let path = format!("/v1/audits/{}/events", job["id"].as_str().unwrap());
    let events = send(alice.request(Method::GET, &path));
    let lines = ["{\"text\": \"one\"}\n", "{\"text\": \"two\"}\n"];
    let head = alice.request(Method::POST, "/v1/datasets").build().unwrap();
    let mut upload = TcpStream::connect(app.address).await.unwrap();
    let begin = format!(
        "POST /v1/datasets HTTP/1.1\r\nhost: localhost\r\nauthorization: {}\r\ncontent-type: application/x-ndjson\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{}",
        head.headers()["authorization"].to_str().unwrap(),
        lines[0].len() + lines[1].len(),
        lines[0]
    );
    upload.write_all(begin.as_bytes()).await.unwrap();
    let events = tokio::spawn(events);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(!events.is_finished());
    keys.file.keys.clear();
    keys.write();
    app.entry.reload();
    let events =
        tokio::time::timeout(std::time::Duration::from_secs(5), events).await.expect("the stream ends").unwrap();
    assert!(events.text().contains("event: status") && !events.text().contains("succeeded"), "{}", events.text());
    upload.write_all(lines[1].as_bytes()).await.unwrap();
    let mut refused = String::new();
    upload.read_to_string(&mut refused).await.unwrap();
    assert!(refused.starts_with("HTTP/1.1 401 ") && refused.contains("revoked"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn quotas_bound_tokens_and_requests() {
    let mut keys = Keys::new();
    let few = keys.add("few", SCORING, ClientLimits { tokens_per_minute: Some(10), ..ClientLimits::default() });
    let single = keys.add("single", SCORING, ClientLimits { requests: Some(1), ..ClientLimits::default() });
    let app = keys.app().await;
    let few = app.with_key(&few);
    few.post("/v1/score", &json!({ "inputs": "word ".repeat(30), "methods": ["loss"] })).await.ok();
    let refused = few.post("/v1/score", &text(0)).await;
    assert!(refused.problem(429)["detail"].as_str().unwrap().contains("10 tokens a minute"));
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 30);
    // A quota of tokens bounds scoring alone.
    assert_eq!(few.get("/v1/audits").await.status, 200);

    let single = app.with_key(&single);
    // A request that is being waited for is in flight.
    let waiting = single.clone();
    let texts: Vec<String> = (0..500).map(|number| format!("Text {number}: {}", "word ".repeat(20))).collect();
    let scoring = tokio::spawn(async move { waiting.score(&json!({ "inputs": texts, "methods": ["loss"] })).await });
    while app.engine.status().interactive_tokens == 0 {
        assert!(!scoring.is_finished(), "the texts never waited");
        tokio::task::yield_now().await;
    }
    let refused = loop {
        let answer = single.get("/v1/models").await;
        if answer.status == 429 {
            break answer;
        }
        assert!(!scoring.is_finished(), "no request was refused");
    };
    assert!(refused.problem(429)["detail"].as_str().unwrap().contains("1 requests of this client are in flight"));
    scoring.await.unwrap();
    assert_eq!(single.get("/v1/models").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_change_while_the_service_runs() {
    let mut keys = Keys::new();
    let old = keys.add("alice", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let audit = app.with_key(&old).audit(&json!({ "samples": samples(), "methods": ["loss"] })).await.ok();
    // A second key of the same name sees what the first has made.
    let new = keys.add("alice", SCORING, ClientLimits::default());
    assert_eq!(app.with_key(&new).get("/v1/audits").await.status, 401);
    app.entry.reload();
    let path = format!("/v1/audits/{}", id(&audit));
    assert_eq!((app.with_key(&new).get(&path).await.status, app.with_key(&old).get(&path).await.status), (200, 200));
    keys.file.keys.remove(0);
    keys.file.keys[0].expires = Some(OffsetDateTime::now_utc() + Duration::HOUR);
    keys.write();
    app.entry.reload();
    assert_eq!((app.with_key(&new).get(&path).await.status, app.with_key(&old).get(&path).await.status), (200, 401));
    keys.file.keys[0].expires = Some(OffsetDateTime::now_utc() - Duration::SECOND);
    keys.write();
    app.entry.reload();
    assert!(app.with_key(&new).get(&path).await.problem(401)["detail"].as_str().unwrap().contains("expired"));
    // A file that cannot be read locks nobody in or out.
    keys.file.keys[0].expires = None;
    keys.write();
    app.entry.reload();
    std::fs::write(keys.path(), "nonsense").unwrap();
    app.entry.reload();
    assert_eq!((app.with_key(&new).get(&path).await.status, app.with_key(&old).get(&path).await.status), (200, 401));
}

fn entries(directory: &Path) -> Vec<Value> {
    let lines = std::fs::read_to_string(directory.join("access.ndjson")).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_recorded_without_their_texts() {
    let mut keys = Keys::new();
    let secret = keys.add("alice", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let alice = app.with_key(&secret);
    alice.score(&text(7)).await;
    app.post("/v1/score?canary=1", &text(7)).await.problem(401);
    let audit = alice.audit(&json!({ "samples": samples(), "methods": ["loss"] })).await.ok();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while entries(keys.directory.path()).len() < 3 {
        assert!(std::time::Instant::now() < deadline, "the record is not written");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let recorded = entries(keys.directory.path());
    let [scored, refused, submitted, ..] = recorded.as_slice() else { panic!("{recorded:?}") };
    assert_eq!(
        (&scored["client"], &scored["route"], &scored["status"], &scored["texts"]),
        (&json!("alice"), &json!("/v1/score"), &json!(200), &json!(1))
    );
    assert_eq!(scored["key"].as_str().map(str::len), Some(8));
    assert!(scored["tokens"].as_u64().unwrap() > 3 && scored["model_digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!((&refused["status"], refused.get("client")), (&json!(401), None));
    assert_eq!(
        (&submitted["job"], &submitted["model"], &submitted["texts"]),
        (&audit["id"], &audit["model"], &json!(8))
    );
    // Refused and disconnected clients are named as well.
    send(alice.request(Method::POST, "/v1/models/tiny/unload")).await.problem(403);
    let gone = alice.request(Method::POST, "/v1/audits").header("prefer", "wait=60");
    let long: Vec<Value> =
        (0..5_000).map(|number| json!({ "text": format!("{number} {}", "word ".repeat(20)) })).collect();
    let gone = tokio::spawn(gone.json(&json!({ "samples": long, "methods": ["loss"] })).send());
    while app.engine.status().batch_tokens == 0 {
        assert!(!gone.is_finished(), "the job never waited");
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    gone.abort();
    assert!(gone.await.is_err());
    while entries(keys.directory.path()).len() < 5 {
        assert!(std::time::Instant::now() < deadline + std::time::Duration::from_secs(10), "the record is not written");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let recorded = entries(keys.directory.path());
    assert_eq!((&recorded[3]["status"], &recorded[3]["client"]), (&json!(403), &json!("alice")));
    assert_eq!((&recorded[4]["status"], &recorded[4]["client"]), (&json!(499), &json!("alice")));
    assert!(recorded[4]["job"].is_string(), "{}", recorded[4]);
    let all = std::fs::read_to_string(keys.directory.path().join("access.ndjson")).unwrap();
    for private in ["Text number", "Sample 1", "canary", &secret] {
        assert!(!all.contains(private), "{private}");
    }
}
