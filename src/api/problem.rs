//! Error responses: RFC 9457 problem details. Only this file maps failures to status codes.
//!
//! A handler returns a [`Problem`]; its response carries it unrendered, and the outermost middleware writes the body,
//! for only there is the request's id known for every response. Causes inside the service are logged and not sent.

pub mod responses;
mod sources;

use crate::wire::quoted;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use mia::methods::Fault;
use serde::Serialize;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt::Display;
use utoipa::ToSchema;

/// Maximum number of characters in the detail of a problem, which may repeat parts of the request.
const MOST_CHARS: usize = 2_000;

/// The kinds of problem, each with its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MalformedBody,
    MalformedHead,
    Unauthenticated,
    Forbidden,
    BodyTimeout,
    NotFound,
    UnknownModel,
    MethodNotAllowed,
    NotAcceptable,
    Conflict,
    TooLarge,
    UnsupportedMediaType,
    Invalid,
    QuotaExceeded,
    Internal,
    Unavailable,
    DeadlineExceeded,
}

impl Kind {
    /// Status, last part of the `type` and title.
    pub fn entry(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::MalformedBody => (StatusCode::BAD_REQUEST, "malformed-body", "The body cannot be read"),
            Self::MalformedHead => (StatusCode::BAD_REQUEST, "malformed-head", "The head of the request is ambiguous"),
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "A key is needed"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "This is not allowed"),
            Self::QuotaExceeded => (StatusCode::TOO_MANY_REQUESTS, "quota-exceeded", "The client's quota is used up"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is nothing here"),
            Self::UnknownModel => (StatusCode::NOT_FOUND, "unknown-model", "The model is not configured"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed"),
            Self::NotAcceptable => (StatusCode::NOT_ACCEPTABLE, "not-acceptable", "No acceptable form of the answer"),
            Self::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "body-timeout", "The body came too slowly"),
            Self::Conflict => (StatusCode::CONFLICT, "conflict", "The state does not allow this"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request exceeds a limit"),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The media type is not supported")
            }
            Self::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", "The request is invalid"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The service cannot do this now"),
            Self::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "deadline-exceeded", "The deadline passed"),
        }
    }
}

/// A failure on its way to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    kind: Kind,
    detail: String,
    errors: Vec<PointedFault>,
    /// Seconds.
    retry_after: Option<u64>,
    /// Cause inside the service, for the log alone.
    cause: Option<String>,
    /// Members that RFC 9457 leaves to the service. Boxed because most problems have none and every `Result` holds one.
    extensions: Option<Box<Map<String, Value>>>,
}

/// One fault of a request, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PointedFault {
    /// JSON pointer (RFC 6901) into the body; empty: the body itself, or a query parameter.
    #[schema(examples("/methods/1/k"))]
    pointer: String,
    /// The query parameter that the fault is in, where it is not in the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<String>,
    /// The fault in words, with what was given and what is accepted.
    #[schema(examples("k is 1.5, outside (0, 1]"))]
    detail: String,
}

/// A problem as it is sent.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// Kind of problem; stable.
    #[serde(rename = "type")]
    #[schema(examples("urn:pdr-audit:problem:invalid-request"))]
    uri: String,
    /// The kind in words.
    #[schema(examples("The request is invalid"))]
    title: &'static str,
    /// The HTTP status.
    #[schema(examples(422))]
    status: u16,
    /// Fault.
    #[schema(examples("/methods/1/k: k is 1.5, outside (0, 1]"))]
    detail: String,
    /// Path of the request, or of the audit that failed.
    #[schema(examples("/v1/score"))]
    instance: String,
    /// Id of the request, as in the header `x-request-id` and in the service's log.
    #[schema(examples("0b8b1a0e-54c5-4a3c-9a4c-8f4b0f0c7a7e"))]
    request_id: String,
    /// The faults of an invalid request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<PointedFault>,
    #[serde(flatten)]
    #[schema(ignore)]
    extensions: Map<String, Value>,
}

/// A text of a problem, cut where it is too long.
fn cut(text: String) -> String {
    match quoted(&text, MOST_CHARS) {
        Cow::Borrowed(_) => text,
        Cow::Owned(cut) => cut,
    }
}

impl PointedFault {
    /// A fault of the body.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { pointer: cut(pointer.into()), parameter: None, detail: cut(detail.into()) }
    }

    pub fn of_parameter(name: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { parameter: Some(cut(name.into())), ..Self::new("", detail) }
    }
}

impl From<Fault> for PointedFault {
    /// A fault of the list of methods, pointed at from the body.
    fn from(fault: Fault) -> Self {
        Self::new(format!("/methods{}", fault.pointer), fault.detail)
    }
}

impl Problem {
    /// A problem of a kind; `detail` must say what is wrong in this case.
    pub fn new(kind: Kind, detail: impl Display) -> Self {
        let retry_after = matches!(kind, Kind::Unavailable | Kind::QuotaExceeded).then_some(5);
        Self { kind, detail: cut(detail.to_string()), errors: Vec::new(), retry_after, cause: None, extensions: None }
    }

    /// Returns true if the time of the request had passed, so that it may have been worked on.
    #[must_use]
    pub fn is_late(&self) -> bool {
        self.kind == Kind::DeadlineExceeded
    }

    /// A fault of the service itself. The cause is for the log alone.
    pub fn internal(cause: impl Display) -> Self {
        let detail = "the service failed; its log has more under the id of this request";
        Self { cause: Some(cause.to_string()), ..Self::new(Kind::Internal, detail) }
    }

    /// A request with these faults, at least one; the list may be a part of all `total`.
    pub fn invalid(errors: Vec<PointedFault>, total: usize) -> Self {
        let first = errors.first().map_or(String::new(), |e| match (e.pointer.as_str(), &e.parameter) {
            ("", Some(parameter)) => format!("query parameter `{parameter}`: {}", e.detail),
            ("", None) => e.detail.clone(),
            (pointer, _) => format!("{pointer}: {}", e.detail),
        });
        let detail = if total > 1 { format!("{total} faults, the first: {first}") } else { first };
        Self { errors, ..Self::new(Kind::Invalid, detail) }
    }

    /// An invalid request with one fault.
    pub fn fault(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid(vec![PointedFault::new(pointer, detail)], 1)
    }

    /// A request whose methods have these faults.
    fn unfit(faults: &[Fault]) -> Self {
        Self::invalid(faults.iter().cloned().map(PointedFault::from).collect(), faults.len())
    }

    /// The client takes none of the media types that the route offers.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        Self::new(Kind::NotAcceptable, format!("the header `accept` takes none of {}", offered.join(", ")))
    }

    /// The request's deadline passed.
    pub fn deadline() -> Self {
        Self::new(Kind::DeadlineExceeded, "the answer was not ready within `server.request_timeout`")
    }

    fn retry_in(seconds: u64, detail: impl Display) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(Kind::Unavailable, detail) }
    }

    /// The model or the device failed; why is the operator's business.
    fn failed(what: &str, reason: impl Display) -> Self {
        let detail = format!("the {what} failed; the service's log says why");
        Self { cause: Some(reason.to_string()), ..Self::retry_in(30, detail) }
    }

    /// Adds a member that RFC 9457 leaves to the service.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extensions.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    pub fn body(&self, instance: &str, request_id: &str) -> ProblemBody {
        let (status, slug, title) = self.kind.entry();
        ProblemBody {
            uri: format!("urn:pdr-audit:problem:{slug}"),
            title,
            status: status.as_u16(),
            detail: self.detail.clone(),
            instance: instance.to_owned(),
            request_id: request_id.to_owned(),
            errors: self.errors.clone(),
            extensions: self.extensions.as_deref().cloned().unwrap_or_default(),
        }
    }
}

impl IntoResponse for Problem {
    /// Status and headers; the body is written by the middleware.
    fn into_response(self) -> Response {
        if let Some(cause) = &self.cause {
            tracing::error!(cause, "{}", self.detail);
        }
        let mut response = self.kind.entry().0.into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.kind == Kind::Unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}
