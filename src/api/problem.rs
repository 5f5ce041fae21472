//! Error responses: RFC 9457 problem details. Only this file maps failures to status codes.
//!
//! A handler returns a [`Problem`]; its response carries it unrendered, and the outermost middleware writes the body,
//! for only there is the request's id known for every response. Causes inside the service are logged and not sent.

use super::problem_body::cut;
pub use super::problem_body::{PointedFault, ProblemBody};
use crate::access::QuotaExceeded;
use crate::engine::{EngineError, Refusal};
use crate::pool::{AdapterError, FindError, LoadError, OpenError, UnknownModel, UnloadError};
use crate::scorer::ScorerError;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use std::time::Duration;

/// Advice for requests with too many texts for one answer.
const AUDIT_INSTEAD: &str = "send fewer at once, or all of them to `POST /v1/audits`, which has no deadline";

/// The kinds of problem, each with its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    MalformedBody,
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
            Self::Unauthenticated => (StatusCode::UNAUTHORIZED, "unauthenticated", "A key is needed"),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", "This is not allowed"),
            Self::QuotaExceeded => (StatusCode::TOO_MANY_REQUESTS, "quota-exceeded", "The key's quota is used up"),
            Self::NotFound => (StatusCode::NOT_FOUND, "not-found", "There is nothing here"),
            Self::UnknownModel => (StatusCode::NOT_FOUND, "unknown-model", "The model is not configured"),
            Self::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed"),
            Self::NotAcceptable => (StatusCode::NOT_ACCEPTABLE, "not-acceptable", "No acceptable form of the answer"),
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

impl Problem {
    /// A problem of a kind; `detail` must say what is wrong in this case.
    pub fn new(kind: Kind, detail: impl Into<String>) -> Self {
        let retry_after = matches!(kind, Kind::Unavailable | Kind::QuotaExceeded).then_some(5);
        Self { kind, detail: cut(detail.into()), errors: Vec::new(), retry_after, cause: None, extensions: None }
    }

    /// A fault of the service itself. The cause is for the log alone.
    pub fn internal(cause: impl std::fmt::Display) -> Self {
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

    /// The client takes none of the media types that the route offers.
    pub fn not_acceptable(offered: &[&str]) -> Self {
        Self::new(Kind::NotAcceptable, format!("the header `accept` takes none of {}", offered.join(", ")))
    }

    /// The request's deadline passed.
    pub fn deadline() -> Self {
        Self::new(Kind::DeadlineExceeded, "the answer was not ready within `server.request_timeout`")
    }

    /// The scores were not ready in time.
    fn late_scores() -> Self {
        let detail = format!("the scores were not ready within `server.request_timeout`; {AUDIT_INSTEAD}");
        Self::new(Kind::DeadlineExceeded, detail)
    }

    /// Why texts were not scored in the time of a request. What would fit a whole one, and not what was left of it, may be
    /// asked again.
    pub fn of_scoring(error: Option<ScorerError>, timeout: Duration) -> Self {
        match error {
            None => Self::late_scores(),
            Some(ScorerError::Refused(Refusal::CannotMeetDeadline { estimate, available })) if estimate <= timeout => {
                let detail = format!(
                    "the texts would take about {estimate:.1?}, and {available:.1?} of `server.request_timeout` were left; {AUDIT_INSTEAD}"
                );
                Self::retry_in(1, detail)
            }
            Some(error) => error.into(),
        }
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

    fn retry_in(seconds: u64, detail: impl Into<String>) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(Kind::Unavailable, detail) }
    }

    /// The model or the device failed; why is the operator's business.
    pub(super) fn failed(what: &str, reason: &str) -> Self {
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
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if self.kind == Kind::Unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self);
        response
    }
}

impl From<QuotaExceeded> for Problem {
    fn from(exceeded: QuotaExceeded) -> Self {
        let seconds = match exceeded {
            QuotaExceeded::Requests(_) => 1,
            QuotaExceeded::Tokens { wait, .. } => wait.as_secs() + 1,
        };
        Self { retry_after: Some(seconds), ..Self::new(Kind::QuotaExceeded, exceeded.to_string()) }
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::UnknownModel(_) => Self::new(Kind::UnknownModel, refusal.to_string()),
            Refusal::WrongKind { .. } => Self::fault("/model", refusal.to_string()),
            Refusal::TooLarge { limit, allowed, requested } => {
                let tokens = format!("the texts have {requested} tokens that are not cached");
                let detail = match *limit {
                    "queue" => format!("{tokens}; the limit `engine.max_queue_tokens` is {allowed}; {AUDIT_INSTEAD}"),
                    limit => format!("{tokens}; the {limit} is {allowed}"),
                };
                Self::new(Kind::TooLarge, detail)
            }
            Refusal::CannotMeetDeadline { estimate, .. } => {
                let detail = format!(
                    "the texts would take about {estimate:.1?}, longer than `server.request_timeout`; {AUDIT_INSTEAD}"
                );
                Self::new(Kind::TooLarge, detail)
            }
            Refusal::Busy { retry_after } => Self::retry_in(retry_after.as_secs().max(1), refusal.to_string()),
            Refusal::Draining | Refusal::Unloading => Self::new(Kind::Unavailable, refusal.to_string()),
            // It was opened anew while this request was under way.
            Refusal::NotOpened(_) => Self::retry_in(1, refusal.to_string()),
            Refusal::ModelFailed(reason) => Self::failed("model", reason),
            Refusal::Unanswered(reason) => {
                let detail = "no server of the model answers; the service's log says why";
                Self { cause: Some(reason.clone()), ..Self::retry_in(5, detail) }
            }
            Refusal::DeviceLost(reason) => Self::failed("device", reason),
        }
    }
}

impl From<&EngineError> for Problem {
    fn from(error: &EngineError) -> Self {
        match error {
            EngineError::DeadlineExceeded => Self::late_scores(),
            EngineError::ModelFailed(reason) | EngineError::LoadFailed(reason) => Self::failed("model", reason),
            EngineError::DeviceLost(reason) => Self::failed("device", reason),
            EngineError::Unloaded | EngineError::ShuttingDown => Self::new(Kind::Unavailable, error.to_string()),
        }
    }
}

impl From<&ScorerError> for Problem {
    fn from(error: &ScorerError) -> Self {
        match error {
            ScorerError::Unopened(OpenError::UnknownModel(error)) => error.clone().into(),
            ScorerError::Unopened(OpenError::Adapter(error)) => error.clone().into(),
            ScorerError::Unopened(error) => Self::failed("model", &error.to_string()),
            ScorerError::Masked(_) => Self::fault("/model", error.to_string()),
            ScorerError::Unfit(faults) => {
                Self::invalid(faults.iter().cloned().map(PointedFault::from).collect(), faults.len())
            }
            ScorerError::Refused(refusal) => refusal.into(),
            ScorerError::Failed(error) => error.into(),
            ScorerError::AnswerTooLong { .. } => Self::new(Kind::TooLarge, error.to_string()),
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

impl From<AdapterError> for Problem {
    fn from(error: AdapterError) -> Self {
        let kind = match error {
            AdapterError::UnknownModel(_) | AdapterError::Unknown { .. } => Kind::UnknownModel,
            AdapterError::Taken(_) | AdapterError::InUse(_) => Kind::Conflict,
            AdapterError::Files { .. } => return Self::failed("adapter", &error.to_string()),
            AdapterError::Panicked(_) => return Self::internal(error.to_string()),
        };
        Self::new(kind, error.to_string())
    }
}

impl From<UnloadError> for Problem {
    fn from(error: UnloadError) -> Self {
        match &error {
            UnloadError::Adapter(error) => error.clone().into(),
            UnloadError::UnknownModel(_) => Self::new(Kind::UnknownModel, error.to_string()),
            UnloadError::Ended(ended) => (&EngineError::from(ended.clone())).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Problem;
    use crate::engine::Refusal;
    use crate::scorer::ScorerError;
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
            // A whole deadline is shorter than what is estimated.
            let problem = Problem::of_scoring(Some(ScorerError::Refused(refusal)), seconds(60));
            let body = serde_json::to_string(&problem.body("", "")).unwrap();
            assert!(body.contains(words) && !body.contains("secret"), "{body}");
            let response = problem.into_response();
            let header = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!((response.status().as_u16(), header), (status, retry_after), "{body}");
        }
    }
    #[test]
    fn texts_that_never_fit_are_told_where_they_do() {
        let seconds = Duration::from_secs;
        let late = |estimate| {
            ScorerError::Refused(Refusal::CannotMeetDeadline { estimate: seconds(estimate), available: seconds(5) })
        };
        let full = ScorerError::Refused(Refusal::TooLarge { limit: "queue", allowed: 1, requested: 2 });
        for (error, status, names_audits) in [
            (Some(late(61)), 413, true),
            (Some(late(60)), 503, true),
            (Some(full), 413, true),
            (None, 504, true),
            (Some(ScorerError::Refused(Refusal::Busy { retry_after: seconds(7) })), 503, false),
        ] {
            let problem = Problem::of_scoring(error, seconds(60));
            assert_eq!(problem.detail.contains("/v1/audits"), names_audits, "{}", problem.detail);
            let response = problem.into_response();
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers().contains_key(RETRY_AFTER), status == 503);
        }
    }
}
