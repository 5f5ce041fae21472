//! The access record over HTTP, and its check by the command line.

use crate::common::client::send;
use crate::common::keys::{Keys, SCORING};
use pdr_audit::access::{ClientLimits, KeyScope};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PROGRAM: &str = env!("CARGO_BIN_EXE_pdr-audit");

fn entries(path: &Path) -> Vec<Value> {
    std::fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verify(path: &Path) -> Output {
    Command::new(PROGRAM).args(["record", "verify"]).arg(path).output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_names_the_client_behind_a_proxy_and_shows_what_was_changed() {
    let mut keys = Keys::new();
    let alice = keys.add("alice", SCORING, ClientLimits::default());
    let app = keys.app_with(|settings| settings.server.proxies = vec!["127.0.0.0/8".to_owned()]).await;
    let client = app.with_key(&alice);
    for (name, value) in [("x-forwarded-for", "192.0.2.7"), ("forwarded", "for=nonsense"), ("x-other", "192.0.2.7")] {
        let request = client.request(Method::GET, "/v1/models").header(name, value);
        assert_eq!(send(request).await.status, 200);
    }
    let secret = keys.add("bob", SCORING, ClientLimits::default());
    app.entry.reload();
    app.entry.finish();
    let recorded = entries(&keys.record());
    let addresses: Vec<_> = recorded[..3].iter().map(|entry| (&entry["peer"], &entry["client_address"])).collect();
    let peer = json!("127.0.0.1");
    assert_eq!(addresses, [(&peer, &json!("192.0.2.7")), (&peer, &Value::Null), (&peer, &Value::Null)]);
    let bob = keys.file.keys[1].id.clone();
    assert_eq!((&recorded[3]["event"], &recorded[3]["added"]), (&json!("keys_read"), &json!([bob])));
    assert_eq!(recorded[4]["event"], "stopped");
    assert!(!std::fs::read_to_string(keys.record()).unwrap().contains(&secret));

    let output = verify(&keys.record());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && said.starts_with("5 lines hold"), "{said}");
    let changed = std::fs::read_to_string(keys.record()).unwrap().replace("192.0.2.7", "192.0.2.8");
    std::fs::write(keys.record(), changed).unwrap();
    let output = verify(&keys.record());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && said.contains("access.ndjson, line 2: its `previous`"), "{said}");
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn administration_waits_for_a_record_that_can_be_written() {
    let mut keys = Keys::new();
    let admin = keys.add("admin", &[KeyScope::Score, KeyScope::Admin], ClientLimits::default());
    let app = keys.app_with(|settings| settings.auth.record = Some("/dev/full".into())).await;
    let client = app.with_key(&admin);
    assert_eq!(client.get("/readyz").await.ok()["record_is_written"], true);
    let until = Instant::now() + Duration::from_secs(10);
    while client.get("/readyz").await.ok()["record_is_written"] == true {
        assert!(Instant::now() < until, "the full disk does not show");
        client.get("/v1/models").await.ok();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refused = client.post("/v1/models/tiny/unload", &json!({})).await;
    assert!(refused.problem(503)["detail"].as_str().unwrap().contains("access record"));
    client.score(&json!({ "inputs": "a b c", "methods": ["loss"] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ambiguous_heads_are_refused() {
    let mut keys = Keys::new();
    let alice = keys.add("alice", SCORING, ClientLimits::default());
    let app = keys.app().await;
    let key = format!("authorization: Bearer {alice}\r\n");
    for (extra, status) in [("", "200"), (key.as_str(), "400"), ("host: other\r\n", "400")] {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        let head = format!("GET /v1/models HTTP/1.1\r\nhost: localhost\r\n{key}{extra}connection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{extra}: {answer}");
        assert_eq!(answer.contains("is there more than once"), status == "400", "{answer}");
    }
}
