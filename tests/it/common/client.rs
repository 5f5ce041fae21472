//! A client that speaks to the service as any other would.

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder};
use serde_json::Value;
use std::net::SocketAddr;

/// A client of one service.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    pub address: SocketAddr,
    key: Option<String>,
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        Self { http: reqwest::Client::new(), address, key: None }
    }

    /// The same with a key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: Some(key.to_owned()), ..self.clone() }
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("http://{}{path}", self.address));
        self.key.iter().fold(request, |request, key| request.bearer_auth(key))
    }

    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.request(Method::POST, path).json(body)).await
    }

    /// Posts bytes as they are.
    pub async fn post_bytes(&self, path: &str, content_type: Option<&str>, body: Vec<u8>) -> Answer {
        let request = self.request(Method::POST, path).body(body);
        send(content_type.into_iter().fold(request, |request, value| request.header(CONTENT_TYPE, value))).await
    }

    /// The value of a series of `/metrics`, or 0 where it is not there yet.
    pub async fn counter(&self, series: &str) -> u64 {
        let metrics = self.get("/metrics").await;
        let value = metrics.text().lines().find_map(|line| line.strip_prefix(series));
        value.map_or(0, |value| value.trim().parse().expect("a counter is a whole number"))
    }

    /// Posts an audit and waits for its end.
    pub async fn audit(&self, body: &Value) -> Answer {
        send(self.request(Method::POST, "/v1/audits").header("prefer", "wait=60").json(body)).await
    }

    /// The answer of `/v1/score`, which must be a success.
    pub async fn score(&self, body: &Value) -> Value {
        self.post("/v1/score", body).await.ok()
    }
}

/// Sends a request and reads the answer.
pub async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.expect("the service answers");
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, body: response.bytes().await.expect("the answer is whole").to_vec() }
}

impl Answer {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("the header is text"))
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the answer is UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The body of a success.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        assert!(!self.text().contains("NaN"), "{}", self.text());
        self.json()
    }

    /// The problem of this status, which must have everything that a problem has.
    pub fn problem(&self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        assert_eq!(self.header("content-type"), "application/problem+json", "{}", self.text());
        let problem = self.json();
        assert_eq!(problem["status"], status);
        for member in ["type", "title", "detail", "instance", "request_id"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{member} of {problem}");
        }
        assert_eq!(problem["request_id"], self.header("x-request-id"));
        assert_eq!(self.headers.contains_key("retry-after"), [429, 503].contains(&status));
        problem
    }

    /// The pointers of a 422.
    pub fn pointers(&self) -> Vec<String> {
        let problem = self.problem(422);
        let errors = problem["errors"].as_array().expect("the faults");
        assert!(errors.iter().all(|error| error["detail"].as_str().is_some_and(|detail| !detail.is_empty())));
        errors.iter().map(|error| error["pointer"].as_str().expect("a pointer").to_owned()).collect()
    }
}
