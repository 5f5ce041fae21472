//! Connections that keep the service waiting, and pages that are not its own.

use crate::common::app::App;
use crate::common::client::send;
use pdr_audit::config::{ByteSize, Settings, TlsSettings};
use reqwest::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

async fn app(change: impl FnOnce(&mut Settings)) -> App {
    App::with(|settings| {
        settings.server.header_timeout = Duration::from_millis(500);
        settings.server.write_timeout = Duration::from_millis(500);
        change(settings);
    })
    .await
}

/// Returns what the service sends until it closes the connection.
async fn ended(stream: &mut TcpStream) -> Vec<u8> {
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    // A connection that is reset has ended as well.
    let _ = tokio::time::timeout(Duration::from_secs(20), reading).await.expect("the connection ends");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_sends_no_request_is_cut_off() {
    let app = app(|_| {}).await;
    let beginnings: [&[u8]; 5] =
        [b"", b"P", b"PRI * HTTP/2.0\r\n", b"GET /livez HTTP/1.1\r\nhost: localhost\r\n", b"GET /livez HT"];
    for beginning in beginnings {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        stream.write_all(beginning).await.unwrap();
        let begun = Instant::now();
        ended(&mut stream).await;
        assert!(begun.elapsed() < Duration::from_secs(15), "{beginning:?}");
    }
    // A connection that was used and is idle ends as well.
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(ended(&mut stream).await.starts_with(b"HTTP/1.1 200"));
    assert_eq!(app.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_heads_are_refused() {
    let app = app(|_| {}).await;
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\nx-long: {}\r\n\r\n", "a".repeat(70_000));
    // It may be refused before all of it is sent.
    let _ = stream.write_all(head.as_bytes()).await;
    let answer = ended(&mut stream).await;
    // The answer may be lost where the service closes the connection while the rest of the head arrives.
    assert!(!answer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&answer));
    let short = app.request(Method::GET, "/livez").header("x-long", "a".repeat(30_000));
    assert_eq!(send(short).await.status, 200);
}

/// A request whose answer is longer than the buffers of a connection.
fn long_answer() -> Value {
    let inputs: Vec<String> = (0..3_000).map(|number| format!("A text to score, number {number}.")).collect();
    json!({ "inputs": inputs, "methods": ["loss"], "details": ["tokens"] })
}

/// A connection on which such an answer was asked for, and nothing is read.
async fn unread_over_http_1(app: &App) -> TcpStream {
    let body = long_answer().to_string();
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let head = format!(
        "POST /v1/score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_nobody_reads_end() {
    let app = app(|_| {}).await;
    let before = app.counter("pdr_audit_http_unread_answers_total").await;
    let _unread = unread_over_http_1(&app).await;
    let until = Instant::now() + Duration::from_secs(60);
    while app.counter("pdr_audit_http_unread_answers_total").await == before {
        assert!(Instant::now() < until, "the connection stays open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    // Nothing of it is left: no request in flight but the one that asks.
    while app.counter("pdr_audit_http_in_flight").await > 1 {
        assert!(Instant::now() < until, "a request is left in flight");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_answer_nobody_reads_is_closed() {
    let app = app(|settings| settings.server.connections = Some(1)).await;
    let _unread = unread_over_http_1(&app).await;
    let until = Instant::now() + Duration::from_secs(60);
    // There is room for one connection, and this one is not read: only the service can end it.
    loop {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        // The service may refuse the connection before all of it is sent.
        let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        if ended(&mut stream).await.starts_with(b"HTTP/1.1 200") {
            break;
        }
        assert!(Instant::now() < until, "the connection stays open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The connection makes progress all the time, so only the answer itself can be what waits.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_nobody_reads_ends_on_a_busy_connection_of_http_2() {
    let app = app(|_| {}).await;
    let window = 65_535;
    let client =
        reqwest::Client::builder().http2_prior_knowledge().http2_initial_stream_window_size(window).build().unwrap();
    let url = |path: &str| format!("http://{}{path}", app.address);
    let unread = client.post(url("/v1/score")).json(&long_answer()).send().await.unwrap();
    assert_eq!(unread.status(), 200);
    for _ in 0..50 {
        assert_eq!(send(client.get(url("/livez"))).await.status, 200);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(unread.bytes().await.is_err(), "the answer was kept");
    assert_eq!(send(client.get(url("/livez"))).await.status, 200, "the connection goes on");
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_only_so_many_connections() {
    let app = app(|settings| {
        (settings.server.connections, settings.server.connections_per_address) = (Some(3), Some(3));
    })
    .await;
    let held: Vec<TcpStream> = {
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(TcpStream::connect(app.address).await.unwrap());
        }
        held
    };
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut one_more = TcpStream::connect(app.address).await.unwrap();
    let answer = ended(&mut one_more).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 503"), "{}", String::from_utf8_lossy(&answer));
    drop(held);
    // There is room again once they are gone.
    let until = Instant::now() + Duration::from_secs(10);
    loop {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await.unwrap();
        if ended(&mut stream).await.starts_with(b"HTTP/1.1 200") {
            break;
        }
        assert!(Instant::now() < until, "there is no room");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_address_cannot_take_all_connections() {
    let app = app(|settings| settings.server.connections = Some(4)).await;
    let local = |last: u8| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        socket.connect(app.address)
    };
    let _held = [local(2).await.unwrap(), local(2).await.unwrap()];
    tokio::time::sleep(Duration::from_millis(100)).await;
    let answer = async |mut stream: TcpStream| {
        let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        ended(&mut stream).await
    };
    let refused = answer(local(2).await.unwrap()).await;
    assert!(refused.is_empty() || refused.starts_with(b"HTTP/1.1 503"), "{}", String::from_utf8_lossy(&refused));
    // Another address is still served.
    assert!(answer(local(3).await.unwrap()).await.starts_with(b"HTTP/1.1 200"));
}

/// The preface of HTTP/2, and a frame of settings without any.
const HTTP_2_BEGINNING: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
/// A frame `PING` of HTTP/2.
const HTTP_2_PING: &[u8] = b"\0\0\x08\x06\0\0\0\0\0\0\0\0\0\0\0\0\0";

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_http_2_without_a_request_are_closed() {
    let app = app(|_| {}).await;
    // One client sends the beginning alone; another goes on sending pings, and answers none.
    for sends_pings in [false, true] {
        let (mut stream, begun) = (TcpStream::connect(app.address).await.unwrap(), Instant::now());
        stream.write_all(HTTP_2_BEGINNING).await.unwrap();
        let (mut reading, mut writing) = stream.split();
        let pings = async {
            while sends_pings && writing.write_all(HTTP_2_PING).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            std::future::pending::<()>().await;
        };
        let mut answer = Vec::new();
        tokio::select! {
            _ = reading.read_to_end(&mut answer) => {}
            () = pings => {}
            () = tokio::time::sleep(Duration::from_secs(15)) => panic!("the connection stays open"),
        }
        assert!(begun.elapsed() >= Duration::from_millis(500), "{sends_pings}: {:?}", begun.elapsed());
    }
}

/// A real client, whose connection is closed when it is idle and not while its request runs.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_of_http_2_outlasts_the_time_of_an_idle_connection() {
    let app = app(|_| {}).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let samples: Vec<Value> = (0..20_000).map(|number| json!({ "text": format!("{number} is the number") })).collect();
    let body = json!({ "samples": samples, "methods": ["loss"] });
    let url = format!("http://{}/v1/audits", app.address);
    let begun = Instant::now();
    let job = send(client.post(&url).header("prefer", "wait=2").json(&body)).await;
    assert!([200, 202].contains(&job.status), "{}", job.text());
    assert!(job.status == 200 || begun.elapsed() >= Duration::from_secs(2));
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(send(client.get(format!("http://{}/livez", app.address))).await.status, 200, "on a new connection");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_stall_do_not_take_all_memory() {
    let app = App::with(|settings| {
        settings.server.body_limit = ByteSize::kib(64);
        settings.server.request_memory = Some(ByteSize::kib(128));
        settings.server.request_timeout = Duration::from_secs(2);
    })
    .await;
    let head =
        "POST /v1/score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 65536\r\n\r\n";
    // All of the body but its last byte.
    let head = format!("{head}{{{}", " ".repeat(65_534));
    let mut stalled = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        stream.write_all(head.as_bytes()).await.unwrap();
        stalled.push(stream);
    }
    let until = Instant::now() + Duration::from_secs(10);
    let refused = loop {
        let answer = app.post("/v1/score", &json!({ "inputs": "a b c" })).await;
        if answer.status != 200 {
            break answer;
        }
        assert!(Instant::now() < until, "the bodies are not counted");
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    assert!(refused.problem(503)["detail"].as_str().unwrap().contains("server.request_memory"));
    for mut stream in stalled {
        assert!(ended_head(&mut stream).await.starts_with("HTTP/1.1 408"));
    }
    app.score(&json!({ "inputs": "a b c", "methods": ["loss"] })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_finds_room_before_it_is_computed() {
    let app = App::with(|settings| {
        settings.server.body_limit = ByteSize::kib(64);
        settings.server.request_memory = Some(ByteSize::kib(256));
    })
    .await;
    let request = |texts: usize| json!({ "inputs": vec!["One of the words."; texts], "details": ["tokens"] });
    let refused = app.post("/v1/score", &request(100)).await;
    assert!(refused.problem(413)["detail"].as_str().unwrap().contains("server.request_memory"));
    let first = app.post("/v1/score", &request(1)).await.ok();
    assert_eq!(first["usage"]["cached_passes"], 0, "the text of the refused request was not scored");
}

/// The first bytes of an answer.
async fn ended_head(stream: &mut TcpStream) -> String {
    let mut head = [0; 64];
    let read = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut head)).await.expect("an answer").unwrap();
    String::from_utf8_lossy(&head[..read]).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_announced_too_long_is_refused_at_once() {
    let app = App::start().await;
    for length in ["100000000000", "9223372036854775808"] {
        let mut stream = TcpStream::connect(app.address).await.unwrap();
        let head = format!(
            "POST /v1/score HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let head = ended_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_pages_and_foreign_hosts_are_refused() {
    let app = App::with(|settings| settings.server.cors = vec!["https://dash.example".to_owned()]).await;
    let unload = |headers: &[(&str, &str)]| {
        let request = app.request(Method::POST, "/v1/models/tiny/unload");
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
    };
    for headers in [[("origin", "http://evil.example")], [("sec-fetch-site", "cross-site")]] {
        send(unload(&headers)).await.problem(403);
    }
    for headers in [vec![], vec![("origin", "https://dash.example")], vec![("sec-fetch-site", "same-origin")]] {
        assert_eq!(send(unload(&headers)).await.status, 200, "{headers:?}");
    }
    // A name that leads to this machine, as a page may have: nothing is read, either.
    let foreign = app.request(Method::GET, "/v1/audits").header("host", "evil.example");
    send(foreign).await.problem(403);
    // Preflight requests of a listed page and of one that is not listed.
    let asks = |origin: &'static str| {
        app.request(Method::OPTIONS, "/v1/score")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
    };
    let allowed = send(asks("https://dash.example")).await;
    assert_eq!(allowed.header("access-control-allow-origin"), "https://dash.example");
    assert_eq!(send(asks("https://evil.example")).await.header("access-control-allow-origin"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forward_pass_that_takes_too_long_shows() {
    let app = App::with(|settings| settings.engine.forward_timeout = Duration::from_nanos(1)).await;
    assert_eq!(app.get("/livez").await.status, 200);
    let client = app.with_key("none is needed");
    let texts: Vec<String> = (0..2_000).map(|number| format!("Text {number}: {}", "word ".repeat(20))).collect();
    let scoring = tokio::spawn(async move { client.score(&json!({ "inputs": texts, "methods": ["loss"] })).await });
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = app.get("/livez").await;
        if answer.status == 503 {
            assert!(answer.problem(503)["detail"].as_str().unwrap().contains("engine.forward_timeout"));
            break;
        }
        assert!(Instant::now() < until && !scoring.is_finished(), "no forward pass was seen");
    }
    scoring.await.unwrap();
    assert_eq!(app.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_list_of_pages_no_page_is_answered() {
    let app = App::start().await;
    let asks = app.request(Method::OPTIONS, "/v1/score").header("origin", "https://dash.example");
    let answer = send(asks.header("access-control-request-method", "POST")).await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin"), answer.header("allow")),
        (405, "", "POST")
    );
}

/// Writes a new certificate and its key.
fn certify(directory: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(directory.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    made.cert.der().clone()
}

/// Returns the answer of `/livez` over TLS to a client that trusts only this certificate.
async fn over_tls(app: &App, trusted: &CertificateDer<'static>) -> std::io::Result<Vec<u8>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).unwrap();
    let config =
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider())).with_safe_default_protocol_versions();
    let config = config.unwrap().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(app.address).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    stream.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_while_the_service_runs() {
    let directory = tempfile::tempdir().unwrap();
    let first = certify(directory.path());
    let (certificate, key) = (directory.path().join("cert.pem"), directory.path().join("key.pem"));
    let tls = TlsSettings { certificate: certificate.clone(), key };
    let app = App::with(|settings| settings.server.tls = Some(tls)).await;
    assert!(over_tls(&app, &first).await.unwrap().starts_with(b"HTTP/1.1 200"));
    let second = certify(directory.path());
    app.entry.reload();
    assert!(over_tls(&app, &second).await.unwrap().starts_with(b"HTTP/1.1 200"));
    assert!(over_tls(&app, &first).await.is_err());
    // One that cannot be used changes nothing.
    std::fs::write(certificate, "nonsense").unwrap();
    app.entry.reload();
    assert!(over_tls(&app, &second).await.unwrap().starts_with(b"HTTP/1.1 200"));
    // A client that does not speak TLS gets no answer.
    let mut plain = TcpStream::connect(app.address).await.unwrap();
    plain.write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    assert!(!ended(&mut plain).await.starts_with(b"HTTP"));
}

#[tokio::test(flavor = "multi_thread")]
async fn both_versions_of_http_give_the_same_answers() {
    let app = App::start().await;
    let inputs: Vec<String> = (0..200).map(|number| format!("A text to score, number {number}.")).collect();
    let body = json!({ "inputs": inputs, "methods": ["loss"], "details": ["tokens"] });
    let first = app.post("/v1/score", &body).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let url = format!("http://{}/v1/score", app.address);
    let second = send(client.post(&url).json(&body)).await;
    assert!(first.body.len() > 200_000, "an answer of several parts");
    assert_eq!((first.json()["results"].clone(), first.status), (second.json()["results"].clone(), second.status));
    // Many at once over one connection.
    let small = json!({ "inputs": "a b c", "methods": ["loss"] });
    let many = (0..300).map(|_| send(client.post(&url).json(&small)));
    assert!(futures::future::join_all(many).await.iter().all(|answer| answer.status == 200));
}
