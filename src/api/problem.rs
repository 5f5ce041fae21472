//! Error responses: RFC 9457 problem details. Only this file maps failures to status codes.
//!
//! A handler returns a [`Problem`]; its response carries it unrendered, and the outermost middleware writes the body,
//! for only there is the request's id known for every response. Causes inside the service are logged and not sent.

use crate::audits::{AuditError, AuditFailure};
use crate::engine::{EngineError, Refusal};
use crate::methods::Fault;
use crate::pool::{FindError, LoadError, OpenError, UnknownModel, UnloadError};
use crate::scorer::ScorerError;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// The kinds of problem, each with its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MalformedBody,
    BodyTimeout,
    NotFound,
    UnknownModel,
    MethodNotAllowed,
    Conflict,
    TooLarge,
    UnsupportedMediaType,
    Invalid,
    Internal,
    Unavailable,
    DeadlineExceeded,
}

impl Kind {
    /// Status, last part of the `type` and title.
    pub fn entry(self) -> (StatusCode, &'static str, &'static str) {
        match self {
            Self::MalformedBody => (StatusCode::BAD_REQUEST, "malformed-body", "The body cannot be read"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is nothing here"),
            Self::UnknownModel => (StatusCode::NOT_FOUND, "unknown-model", "The model is not configured"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed"),
            Self::BodyTimeout => (StatusCode::REQUEST_TIMEOUT, "body-timeout", "The body came too slowly"),
            Self::Conflict => (StatusCode::CONFLICT, "conflict", "The state does not allow this"),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large", "The request exceeds a limit"),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body is not JSON")
            }
            Self::Invalid => (StatusCode::UNPROCESSABLE_ENTITY, "invalid-request", "The request is invalid"),
            Self::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error"),
            Self::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The service cannot do this now"),
            Self::DeadlineExceeded => (StatusCode::GATEWAY_TIMEOUT, "deadline-exceeded", "The deadline passed"),
        }
    }
}

/// One fault of a request, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct PointedFault {
    /// JSON pointer (RFC 6901) into the body; empty: the body itself.
    #[schema(examples("/methods/1/k"))]
    pub pointer: String,
    /// The fault in words, with what was given and what is accepted.
    #[schema(examples("k is 1.5, outside (0, 1]"))]
    pub detail: String,
}

/// A failure on its way to the client.
#[derive(Clone, Debug, PartialEq)]
pub struct Problem {
    kind: Kind,
    detail: String,
    errors: Vec<PointedFault>,
    /// Seconds.
    retry_after: Option<u64>,
    /// What went wrong inside the service: for the log alone.
    cause: Option<String>,
    /// Members that RFC 9457 leaves to the service. Boxed because most problems have none and every `Result` holds one.
    extensions: Option<Box<Map<String, Value>>>,
}

/// A problem as it is sent.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub struct ProblemBody {
    /// What kind of problem it is; stable.
    #[serde(rename = "type")]
    #[schema(examples("urn:pdr-audit:problem:invalid-request"))]
    uri: String,
    /// The kind in words.
    #[schema(examples("The request is invalid"))]
    title: &'static str,
    /// The HTTP status.
    #[schema(examples(422))]
    status: u16,
    /// What is wrong here.
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

impl Problem {
    /// A problem of a kind; `detail` must say what is wrong in this case.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let retry_after = (kind == Kind::Unavailable).then_some(5);
        Self { kind, detail: detail.into(), errors: Vec::new(), retry_after, cause: None, extensions: None }
    }

    /// A fault of the service itself. The cause is for the log alone.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
        let detail = "the service failed; its log has more under the id of this request";
        Self { cause: Some(cause.to_string()), ..Self::new(Kind::Internal, detail) }
    }

    /// A request with these faults, of which there is at least one; the list may be a part of all `total`.
    pub fn invalid(errors: Vec<PointedFault>, total: usize) -> Self {
        let first = errors.first().map_or(String::new(), |e| match e.pointer.as_str() {
            "" => e.detail.clone(),
            pointer => format!("{pointer}: {}", e.detail),
        });
        let detail = if total > 1 { format!("{total} faults, the first: {first}") } else { first };
        Self { errors, ..Self::new(Kind::Invalid, detail) }
    }

    /// An invalid request with one fault.
    pub fn fault(pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::invalid(vec![PointedFault { pointer: pointer.into(), detail: detail.into() }], 1)
    }

    /// The request's deadline passed.
    pub fn deadline() -> Self {
        Self::new(Kind::DeadlineExceeded, "the answer was not ready within `server.request_timeout`")
    }

    /// Adds a member that RFC 9457 leaves to the service.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.extensions.get_or_insert_default().insert(name.to_owned(), value);
        self
    }

    /// The body for a client.
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

    fn retry_in(seconds: u64, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(Kind::Unavailable, detail) }
    }

    /// The model or the device failed; why is the operator's business.
    fn failed(what: &str, reason: &str) -> Self {
        let detail = format!("the {what} failed; the service's log says why");
        Self { cause: Some(reason.to_owned()), ..Self::retry_in(30, detail) }
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
            response.headers_mut().insert(axum::http::header::RETRY_AFTER, seconds.into());
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::UnknownModel(_) => Self::new(Kind::UnknownModel, refusal.to_string()),
            Refusal::WrongKind { .. } => Self::fault("/model", refusal.to_string()),
            Refusal::TooLarge { limit, allowed, requested } => {
                let limit = if *limit == "queue" { "limit `engine.max_queue_tokens`" } else { limit };
                let detail = format!("the texts have {requested} tokens that are not cached; the {limit} is {allowed}");
                Self::new(Kind::TooLarge, detail)
            }
            Refusal::CannotMeetDeadline { .. } => {
                Self::new(Kind::TooLarge, format!("{refusal}; the limit is `server.request_timeout`"))
            }
            Refusal::Busy { retry_after } => Self::retry_in(retry_after.as_secs().max(1), refusal.to_string()),
            Refusal::Draining | Refusal::Unloading => Self::new(Kind::Unavailable, refusal.to_string()),
            // It was opened anew while this request was under way.
            Refusal::NotOpened(_) => Self::retry_in(1, refusal.to_string()),
            Refusal::ModelFailed(reason) => Self::failed("model", reason),
            Refusal::DeviceLost(reason) => Self::failed("device", reason),
        }
    }
}

impl From<&EngineError> for Problem {
    fn from(error: &EngineError) -> Self {
        match error {
            EngineError::DeadlineExceeded => Self::deadline(),
            EngineError::ModelFailed(reason) | EngineError::LoadFailed(reason) => Self::failed("model", reason),
            EngineError::DeviceLost(reason) => Self::failed("device", reason),
            EngineError::ShuttingDown => Self::new(Kind::Unavailable, error.to_string()),
        }
    }
}

impl From<&ScorerError> for Problem {
    fn from(error: &ScorerError) -> Self {
        match error {
            ScorerError::Unopened(OpenError::UnknownModel(error)) => error.clone().into(),
            ScorerError::Unopened(error) => Self::failed("model", &error.to_string()),
            ScorerError::Masked(_) => Self::fault("/model", error.to_string()),
            ScorerError::Unfit(faults) => {
                Self::invalid(faults.iter().cloned().map(PointedFault::from).collect(), faults.len())
            }
            ScorerError::Refused(refusal) => refusal.into(),
            ScorerError::Failed(error) => error.into(),
            ScorerError::TooDetailed { .. } => Self::new(Kind::TooLarge, error.to_string()),
            ScorerError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<ScorerError> for Problem {
    fn from(error: ScorerError) -> Self {
        Self::from(&error)
    }
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Unknown { .. } => Self::new(Kind::UnknownModel, error.to_string()),
            FindError::NoDefault { .. } => Self::fault("/model", error.to_string()),
        }
    }
}

impl From<UnknownModel> for Problem {
    fn from(error: UnknownModel) -> Self {
        Self::new(Kind::UnknownModel, error.to_string())
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        match &error {
            LoadError::UnknownModel(_) => Self::new(Kind::UnknownModel, error.to_string()),
            LoadError::Unloading => Self::new(Kind::Conflict, error.to_string()),
            LoadError::Failed(_) => Self::retry_in(30, error.to_string()),
            LoadError::Ended(ended) => (&EngineError::from(ended.clone())).into(),
        }
    }
}

impl From<UnloadError> for Problem {
    fn from(error: UnloadError) -> Self {
        match &error {
            UnloadError::UnknownModel(_) => Self::new(Kind::UnknownModel, error.to_string()),
            UnloadError::Ended(ended) => (&EngineError::from(ended.clone())).into(),
        }
    }
}

impl From<AuditError> for Problem {
    fn from(error: AuditError) -> Self {
        let kind = match error {
            AuditError::NotFound => Kind::NotFound,
            AuditError::Finished | AuditError::Unfinished => Kind::Conflict,
            AuditError::TooManyScores { .. } | AuditError::TooManyDraws { .. } | AuditError::TooManyNumbers { .. } => {
                Kind::TooLarge
            }
            AuditError::Full(_) | AuditError::Draining => Kind::Unavailable,
        };
        Self::new(kind, error.to_string())
    }
}

impl From<&AuditFailure> for Problem {
    fn from(failure: &AuditFailure) -> Self {
        match failure {
            AuditFailure::Scorer(error) => error.into(),
            AuditFailure::ModelChanged(_) => Self::new(Kind::Conflict, failure.to_string()),
            AuditFailure::ForeignResults | AuditFailure::Panicked(_) => Self::internal(failure),
        }
    }
}

impl From<Fault> for PointedFault {
    /// A fault of the list of methods, pointed at from the body.
    fn from(fault: Fault) -> Self {
        Self { pointer: format!("/methods{}", fault.pointer), detail: fault.detail }
    }
}

#[cfg(test)]
mod tests {
    use super::Problem;
    use crate::engine::Refusal;
    use axum::http::header::RETRY_AFTER;
    use axum::response::IntoResponse;
    use std::time::Duration;

    #[test]
    fn refusals_name_the_limit_and_keep_internals() {
        let seconds = Duration::from_secs;
        let late = Refusal::CannotMeetDeadline { estimate: seconds(90), available: seconds(60) };
        let cases = [
            (Refusal::TooLarge { limit: "queue", allowed: 1, requested: 2 }, 413, "engine.max_queue_tokens", None),
            (late, 413, "server.request_timeout", None),
            (Refusal::Busy { retry_after: seconds(7) }, 503, "queue is full", Some("7")),
            (Refusal::Draining, 503, "shutting down", Some("5")),
            (Refusal::ModelFailed("a secret".into()), 503, "the model failed", Some("30")),
            (Refusal::DeviceLost("a secret".into()), 503, "the device failed", Some("30")),
        ];
        for (refusal, status, words, retry_after) in cases {
            let problem = Problem::from(&refusal);
            let body = serde_json::to_string(&problem.body("", "")).unwrap();
            assert!(body.contains(words) && !body.contains("secret"), "{body}");
            let response = problem.into_response();
            let header = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!((response.status().as_u16(), header), (status, retry_after), "{body}");
        }
    }
}
