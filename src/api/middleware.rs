//! Middleware for every request: its id, its log line, its metrics, and the body of its problem.
//!
//! From the outside in: [`identify`] gives the id, finds the trace and writes problems, [`observe`] logs, counts and records, [`keep_to`] refuses
//! foreign pages, [`authenticate`] finds out who asks, and a panic becomes a problem like any other.

use super::audit_scores::PARQUET;
use super::client_address::client_address;
use super::guards::{RATE_LIMIT, RATE_LIMIT_POLICY, authenticate, keep_to};
use super::in_flight::InFlight;
use super::problem::{Kind, Problem};
use super::route_rules::RouteRules;
use super::state::{ApiState, NotedRequest, RequestNote, RouterState};
use super::trace_context::{TRACEPARENT, TraceContext};
use crate::access::{AccessEntry, AccessRecord, Client, RecordedWork};
use crate::server::PeerAddress;
use crate::telemetry::names;
use crate::wire::quoted;
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use ipnet::IpNet;
use lm::panics::panic_message;
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, NotForContentType, Predicate};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

/// The header that carries a request's id, both ways.
pub const REQUEST_ID: &str = "x-request-id";
/// The longest id that is taken over from a client.
const MAX_ID_BYTES: usize = 128;

/// Maximum number of characters of a path that are logged and sent back.
const MAX_PATH_CHARS: usize = 500;

/// Media types that gzip would not shrink.
const COMPRESSED_ALREADY: NotForContentType = NotForContentType::const_new(PARQUET);

/// Paths that Prometheus and Kubernetes poll.
const PROBES: [&str; 3] = ["/livez", "/readyz", "/metrics"];

/// When a request came, under which id and path, and to which trace it belongs.
#[derive(Clone)]
pub struct Arrival {
    at: Instant,
    id: Arc<str>,
    path: Arc<str>,
    trace: TraceContext,
}

impl Arrival {
    fn new(request: &Request) -> Self {
        let id = client_id(request.headers()).map_or_else(|| Uuid::new_v4().to_string().into(), Arc::from);
        let trace = TraceContext::from_headers(request.headers());
        Self { at: Instant::now(), id, path: quoted(request.uri().path(), MAX_PATH_CHARS).into(), trace }
    }

    pub fn from_extensions(extensions: &Extensions) -> Self {
        // It is noted on every request; one that it is not noted on arrives now.
        let trace = || TraceContext::from_headers(&HeaderMap::new());
        let nameless = || Self { at: Instant::now(), id: "".into(), path: "".into(), trace: trace() };
        extensions.get().cloned().unwrap_or_else(nameless)
    }

    /// Returns the deadline of the request, or `None` if it is beyond the range of the clock.
    pub fn deadline(&self, timeout: Duration) -> Option<Instant> {
        self.at.checked_add(timeout)
    }

    /// The result of some work, or `None` if it is not there by the deadline of the request.
    pub async fn in_time<T>(&self, timeout: Duration, work: impl Future<Output = T>) -> Option<T> {
        match self.deadline(timeout) {
            Some(at) => tokio::time::timeout_at(at.into(), work).await.ok(),
            None => Some(work.await),
        }
    }

    pub fn id(&self) -> &str {
        &self.id
    }
}

/// The id that the client gave, where it is one that can stand in a log line.
fn client_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get(REQUEST_ID)?.to_str().ok()?;
    let sane = (1..=MAX_ID_BYTES).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    sane.then_some(id)
}

/// The routes with all that happens around them.
pub fn around(routes: Router<RouterState>, state: &RouterState, rules: RouteRules) -> Router<RouterState> {
    // From the inside out.
    let mut guarded = caught(routes).layer(from_fn_with_state((state.clone(), rules), authenticate));
    if !state.0.origins.pages.is_empty() {
        guarded = guarded.layer(cors(&state.0.origins.pages));
    }
    let guarded = guarded.layer(from_fn_with_state(state.clone(), keep_to));
    let ApiState { record, write_timeout, proxies, .. } = state.0.clone();
    observed(guarded, Observation { record, write_timeout, proxies })
}

/// Routes whose panics are problems, as are paths and methods that they do not have.
fn caught<S: Clone + Send + Sync + 'static>(routes: Router<S>) -> Router<S> {
    routes
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(COMPRESSED_ALREADY)))
}

/// Routes whose requests are logged, counted and recorded, and whose problems are written.
fn observed<S: Clone + Send + Sync + 'static>(routes: Router<S>, observation: Observation) -> Router<S> {
    routes.layer(from_fn_with_state(observation, observe)).layer(from_fn(identify))
}

/// CORS layer that allows pages of these origins everything, and others nothing.
fn cors(pages: &[String]) -> CorsLayer {
    let pages = pages.iter().filter_map(|page| HeaderValue::from_str(page).ok());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(pages))
        .allow_methods([Method::GET, Method::POST, Method::DELETE])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers([
            HeaderName::from_static(REQUEST_ID),
            HeaderName::from_static(TRACEPARENT),
            header::LOCATION,
            header::RETRY_AFTER,
            HeaderName::from_static("preference-applied"),
            RATE_LIMIT,
            RATE_LIMIT_POLICY,
        ])
}

/// Gives the request its id, and writes the problem that comes back, if one does.
async fn identify(mut request: Request, next: Next) -> Response {
    let arrival = Arrival::new(&request);
    request.extensions_mut().insert(arrival.clone());
    let mut response = next.run(request).await;
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        response = render(&problem, &arrival, response);
    }
    if let Ok(id) = HeaderValue::from_str(&arrival.id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    if let Ok(trace) = HeaderValue::from_str(&arrival.trace.to_string()) {
        response.headers_mut().insert(TRACEPARENT, trace);
    }
    response
}

/// The response with the problem as its body; its other headers stay.
fn render(problem: &Problem, arrival: &Arrival, response: Response) -> Response {
    let (mut head, _) = response.into_parts();
    let json = serde_json::to_vec(&problem.body(&arrival.path, &arrival.id)).unwrap_or_default();
    head.headers.remove(header::CONTENT_LENGTH);
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    Response::from_parts(head, Body::from(json))
}

#[derive(Clone)]
struct Observation {
    record: Option<AccessRecord>,
    /// Maximum time for which a client may read nothing of an answer.
    write_timeout: Duration,
    proxies: Arc<[IpNet]>,
}

/// Logs, counts and records the request.
async fn observe(State(observation): State<Observation>, mut request: Request, next: Next) -> Response {
    let arrival = Arrival::from_extensions(request.extensions());
    let route = request.extensions().get::<MatchedPath>().map_or("unmatched", MatchedPath::as_str).to_owned();
    let span = request_span(&arrival, request.method());
    let peer = request.extensions().get().map(|&PeerAddress(address)| address);
    let client = peer.and_then(|peer| client_address(peer, request.headers(), &observation.proxies));
    let addresses = RequestAddresses { peer, client };
    let mut meter =
        RequestMeter::new(method_name(request.method()), route, arrival.clone(), addresses, observation.record);
    request.extensions_mut().insert(meter.note.clone());
    let in_flight = InFlight::begin();
    async move {
        let response = next.run(request).await;
        meter.status = Some(response.status());
        drop(meter);
        in_flight.until_sent(response, observation.write_timeout)
    }
    .instrument(span)
    .await
}

/// The span of a request, with room for the stages that `POST /v1/score` notes.
fn request_span(arrival: &Arrival, method: &Method) -> Span {
    let Arrival { id, path, trace, .. } = arrival;
    tracing::info_span!(
        "request",
        id = &**id,
        method = method_name(method),
        path = %path,
        trace_id = trace.trace_id(),
        span_id = trace.span_id(),
        tokenize_seconds = Empty,
        queue_seconds = Empty,
        forward_seconds = Empty,
        answer_seconds = Empty,
    )
}

/// Addresses that a request came from.
#[derive(Clone, Copy, Default)]
struct RequestAddresses {
    peer: Option<IpAddr>,
    /// Address of the client behind a proxy.
    client: Option<IpAddr>,
}

/// Counts one request when dropped, so that one whose client went away counts too.
struct RequestMeter {
    method: &'static str,
    route: String,
    arrival: Arrival,
    addresses: RequestAddresses,
    record: Option<AccessRecord>,
    status: Option<StatusCode>,
    note: RequestNote,
}

impl RequestMeter {
    fn new(
        method: &'static str,
        route: String,
        arrival: Arrival,
        addresses: RequestAddresses,
        record: Option<AccessRecord>,
    ) -> Self {
        Self { method, route, arrival, addresses, record, status: None, note: RequestNote::default() }
    }
}

impl Drop for RequestMeter {
    fn drop(&mut self) {
        // 499 is what proxies write where the client closed the connection before the answer.
        let status = self.status.map_or(499, |status| status.as_u16());
        let (method, route, took) = (self.method, std::mem::take(&mut self.route), self.arrival.at.elapsed());
        let seconds = took.as_secs_f64();
        let NotedRequest { client, work } = self.note.read();
        let client = client.as_deref().filter(|client| client.key_id().is_some());
        if PROBES.contains(&route.as_str()) {
            tracing::debug!(status, seconds, "answered");
        } else {
            let RecordedWork { model, texts, tokens, .. } = &work;
            let [peer, client_address] =
                [self.addresses.peer, self.addresses.client].map(|address| address.map(|address| address.to_string()));
            let name = client.map(Client::name);
            tracing::info!(status, seconds, client = name, peer, client_address, model, texts, tokens, "answered");
            if let Some(record) = &self.record {
                record.note(&AccessEntry {
                    time: OffsetDateTime::now_utc().format(&Rfc3339).unwrap_or_default(),
                    request_id: self.arrival.id().to_owned(),
                    client: client.map(|client| client.name().to_owned()),
                    key: client.and_then(Client::key_id).map(str::to_owned),
                    peer,
                    client_address,
                    method,
                    route: route.clone(),
                    status,
                    seconds,
                    work,
                });
            }
        }
        let labels = [("method", method.to_owned()), ("route", route.clone()), ("status", status.to_string())];
        metrics::counter!(names::HTTP_REQUESTS, &labels).increment(1);
        metrics::histogram!(names::HTTP_REQUEST_SECONDS, "route" => route).record(took.as_secs_f64());
    }
}

/// The method as a label: a client can invent methods without end, and a label must have few values.
fn method_name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::HEAD => "HEAD",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

fn panicked(panic: Box<dyn Any + Send>) -> Response {
    Problem::internal(format_args!("panic: {}", panic_message(&*panic))).into_response()
}

pub async fn no_route(request: Request) -> Problem {
    let path = quoted(request.uri().path(), MAX_PATH_CHARS);
    Problem::new(Kind::NotFound, format!("there is no route `{path}`; /docs lists those there are"))
}

/// The header `allow` is there already.
async fn no_method(request: Request) -> Problem {
    let (method, path) = (method_name(request.method()), quoted(request.uri().path(), MAX_PATH_CHARS));
    Problem::new(
        Kind::MethodNotAllowed,
        format!("`{path}` has no method {method}; the header `allow` lists those it has"),
    )
}

#[cfg(test)]
mod tests {
    use super::{Observation, REQUEST_ID, caught, observed};
    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::extract::Request;
    use axum::routing::get;
    use std::time::Duration;
    use tower::ServiceExt;

    #[tokio::test]
    async fn a_panic_is_a_problem_without_internals() {
        async fn broken() -> &'static str {
            panic!("a secret")
        }
        let observation = Observation { record: None, write_timeout: Duration::from_secs(1), proxies: [].into() };
        let router: Router = observed(caught(Router::new().route("/broken", get(broken))), observation);
        let request = Request::get("/broken").header(REQUEST_ID, "mine").body(Body::empty()).unwrap();
        let response = router.oneshot(request).await.unwrap();
        assert_eq!((response.status().as_u16(), &response.headers()[REQUEST_ID]), (500, &"mine".parse().unwrap()));
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let problem: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!((&problem["request_id"], &problem["status"]), (&"mine".into(), &500.into()));
        assert!(!problem.to_string().contains("secret"), "{problem}");
    }
}
