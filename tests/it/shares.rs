//! Shares: where one client takes all that it can, another one is still served.

use crate::common::app::{App, TINY};
use crate::common::client::{Answer, Client, send};
use crate::common::keys::{Keys, SCORING};
use crate::common::tampered::{Latch, MARK, tampered};
use futures::future::{join_all, select_all};
use pdr_audit::access::ClientLimits;
use pdr_audit::config::ByteSize;
use reqwest::Method;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// Audits that a process runs at once.
const MOST_RUNNING: usize = 4;

/// The service with two clients, whose long jobs do not end before the latch is open.
async fn clients_before(latch: &Arc<Latch>) -> (Keys, App, [Client; 2]) {
    let mut keys = Keys::new();
    let secrets = ["alice", "bob"].map(|name| keys.add(name, SCORING, ClientLimits::default()));
    let app = tampered(|settings| keys.ask_for_them(settings), vec![(TINY, latch.before_marked())]).await;
    let clients = secrets.map(|secret| app.with_key(&secret));
    (keys, app, clients)
}

/// A job that stands before the latch.
async fn long_job(client: &Client) -> String {
    let samples = [json!({ "text": format!("A text {MARK}") })];
    let audit = client.post("/v1/audits", &json!({ "samples": samples, "methods": ["loss"] })).await.json();
    audit["id"].as_str().expect("an id").to_owned()
}

fn small_upload(client: &Client) -> impl Future<Output = Answer> {
    let lines = "{\"text\": \"One text.\", \"label\": 1}\n{\"text\": \"Another.\", \"label\": 0}\n";
    client.post_bytes("/v1/datasets", Some("application/x-ndjson"), lines.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_of_one_client_leave_room_for_another() {
    let mut keys = Keys::new();
    let secrets = ["alice", "bob"].map(|name| keys.add(name, SCORING, ClientLimits::default()));
    // By default the memory of requests has room for eight uploads of a client.
    let app = keys.app_with(|settings| settings.server.request_memory = Some(ByteSize::gib(4))).await;
    let [alice, bob] = secrets.map(|secret| app.with_key(&secret));
    let head = alice.request(Method::POST, "/v1/datasets").build().unwrap();
    let key = head.headers()["authorization"].to_str().unwrap().to_owned();
    let mut held = Vec::new();
    let until = Instant::now() + Duration::from_secs(20);
    // One more each time: a small upload may have the slot that one of the held ones asks for.
    let refused = loop {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        let head = format!(
            "POST /v1/datasets HTTP/1.1\r\nhost: localhost\r\nauthorization: {key}\r\ncontent-type: application/x-ndjson\r\ncontent-length: 1000\r\n\r\n{{"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        held.push(stream);
        let answer = small_upload(&alice).await;
        if answer.status == 429 {
            break answer;
        }
        assert!(Instant::now() < until, "{}", answer.text());
    };
    assert!(refused.problem(429)["detail"].as_str().unwrap().contains("16 uploads at once"), "{}", refused.text());
    assert!(!refused.header("retry-after").is_empty());
    assert_eq!(small_upload(&bob).await.status, 201);
    drop(held);
    // There is room again once they are gone.
    while small_upload(&alice).await.status != 201 {
        assert!(Instant::now() < until + Duration::from_secs(20), "there is no room");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn event_streams_of_one_client_leave_room_for_another() {
    let latch = Latch::new();
    let (_keys, _app, [alice, bob]) = clients_before(&latch).await;
    let (hers, his) = (long_job(&alice).await, long_job(&bob).await);
    let open = |client: &Client, id: &str| client.request(Method::GET, &format!("/v1/audits/{id}/events")).send();
    let streams = join_all((0..256).map(|_| open(&alice, &hers))).await;
    assert!(streams.iter().all(|stream| stream.as_ref().unwrap().status() == 200));
    let refused = send(alice.request(Method::GET, &format!("/v1/audits/{hers}/events"))).await;
    assert!(refused.problem(429)["detail"].as_str().unwrap().contains("256 event streams"), "{}", refused.text());
    assert_eq!(open(&bob, &his).await.unwrap().status(), 200);
    latch.open();
}

#[tokio::test(flavor = "multi_thread")]
async fn waits_of_one_client_leave_room_for_another() {
    let latch = Latch::new();
    let (_keys, _app, [alice, bob]) = clients_before(&latch).await;
    // They take her places, so that a further job of hers waits.
    for _ in 0..MOST_RUNNING {
        long_job(&alice).await;
    }
    let body = json!({ "samples": [{ "text": "A text of some words." }], "methods": ["loss"] });
    // Submissions under the same name are one job, which none of them sees the end of. One of them is too many.
    let waits = (0..257).map(|_| {
        let request = alice.request(Method::POST, "/v1/audits").header("idempotency-key", "k");
        tokio::spawn(send(request.header("prefer", "wait=600").json(&body)))
    });
    let (refused, _, held) = select_all(waits).await;
    let refused = refused.unwrap();
    let detail = refused.problem(429)["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("256 waiting submissions at once"), "{detail}");
    // One that does not wait is taken, as is another client's that does.
    let plain = alice.request(Method::POST, "/v1/audits").header("idempotency-key", "other");
    assert!([200, 202].contains(&send(plain.json(&body)).await.status));
    let waiting = bob.request(Method::POST, "/v1/audits").header("prefer", "wait=1").json(&body);
    assert!([200, 202].contains(&send(waiting).await.status));
    assert!(!held.iter().any(JoinHandle::is_finished));
    held.iter().for_each(JoinHandle::abort);
    latch.open();
}
