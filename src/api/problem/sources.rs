//! Conversions of the errors of the layers below into problems.

use super::{Kind, Problem};
use crate::access::{MemoryRefusal, QuotaExceeded};
use crate::audits::{AuditError, CalibrationMismatch};
use crate::datasets::DatasetError;
use crate::engine::{EngineError, Refusal};
use crate::finetunes::RemoveError;
use crate::jobs::{FailureKind, FailureRecord, JobError};
use crate::pool::{AdapterError, FindError, LoadError, OpenError, UnknownModel, UnloadError};
use crate::scorer::ScorerError;
use crate::slots::NoSlot;
use crate::store::StoreError;
use crate::wire::number_of;
use std::time::Duration;

/// Advice for requests with too many texts for one answer.
const AUDIT_INSTEAD: &str = "send fewer at once, or all of them to `POST /v1/audits`, which has no deadline";

impl Problem {
    fn late_scores() -> Self {
        let detail = format!("the scores were not ready within `server.request_timeout`; {AUDIT_INSTEAD}");
        Self::new(Kind::DeadlineExceeded, detail)
    }

    /// Why texts were not scored in the time of a request; `None` where the time is over. What would fit a whole one, and not what
    /// was left of it, may be asked again.
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
}

impl Problem {
    /// A request that finds no slot for a thing, which is named in the singular.
    pub fn no_slot(refusal: NoSlot, thing: &str) -> Self {
        match refusal {
            NoSlot::Full(limit) => {
                let detail =
                    format!("there are {} at once, which is the limit of all clients", number_of(limit, thing));
                Self::new(Kind::Unavailable, detail)
            }
            NoSlot::ShareTaken(limit) => {
                let detail =
                    format!("this client has {} at once, which is the limit of one client", number_of(limit, thing));
                Self::new(Kind::QuotaExceeded, detail)
            }
        }
    }
}

impl From<QuotaExceeded> for Problem {
    fn from(exceeded: QuotaExceeded) -> Self {
        let seconds = match exceeded {
            QuotaExceeded::Requests(_) => 1,
            QuotaExceeded::Tokens { wait, .. } => wait.as_secs() + 1,
            // Somebody must delete something first.
            QuotaExceeded::Stored { .. } => 60,
        };
        Self { retry_after: Some(seconds), ..Self::new(Kind::QuotaExceeded, exceeded) }
    }
}

impl From<MemoryRefusal> for Problem {
    fn from(refusal: MemoryRefusal) -> Self {
        match refusal {
            MemoryRefusal::Full => Self::retry_in(1, refusal),
            MemoryRefusal::Share(_) => Self { retry_after: Some(1), ..Self::new(Kind::QuotaExceeded, refusal) },
            MemoryRefusal::TooLarge { .. } => Self::new(Kind::TooLarge, refusal),
        }
    }
}

impl From<&Refusal> for Problem {
    fn from(refusal: &Refusal) -> Self {
        match refusal {
            Refusal::UnknownModel(_) => Self::new(Kind::UnknownModel, refusal),
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
            Refusal::Busy { retry_after } => Self::retry_in(retry_after.as_secs().max(1), refusal),
            Refusal::Draining | Refusal::Unloading => Self::new(Kind::Unavailable, refusal),
            // It was opened anew while this request was under way.
            Refusal::NotOpened(_) => Self::retry_in(1, refusal),
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
            EngineError::Unloaded | EngineError::ShuttingDown => Self::new(Kind::Unavailable, error),
        }
    }
}

impl From<ScorerError> for Problem {
    fn from(error: ScorerError) -> Self {
        match error {
            ScorerError::Unopened(OpenError::UnknownModel(error)) => error.into(),
            ScorerError::Unopened(OpenError::Adapter(error)) => error.into(),
            ScorerError::Unopened(error) => Self::failed("model", error),
            ScorerError::Masked(_) | ScorerError::CannotContinue { .. } => Self::fault("/model", error.to_string()),
            ScorerError::Unfit(faults) => Self::unfit(&faults),
            ScorerError::Refused(refusal) => (&refusal).into(),
            ScorerError::Failed(error) => (&error).into(),
            ScorerError::AnswerTooLong { .. } => Self::new(Kind::TooLarge, error),
            ScorerError::NoMemory(refusal) => refusal.into(),
            ScorerError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<FindError> for Problem {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Unknown { .. } => Self::new(Kind::UnknownModel, error),
            FindError::NoDefault { .. } => Self::fault("/model", error.to_string()),
        }
    }
}

impl From<UnknownModel> for Problem {
    fn from(error: UnknownModel) -> Self {
        Self::new(Kind::UnknownModel, error)
    }
}

impl From<LoadError> for Problem {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::UnknownModel(_) => Self::new(Kind::UnknownModel, error),
            LoadError::Unloading => Self::new(Kind::Conflict, error),
            LoadError::Failed(_) => Self::retry_in(30, error),
            LoadError::Ended(ended) => (&EngineError::from(ended)).into(),
        }
    }
}

impl From<AdapterError> for Problem {
    fn from(error: AdapterError) -> Self {
        match error {
            AdapterError::UnknownModel(_) | AdapterError::Unknown { .. } => Self::new(Kind::UnknownModel, error),
            AdapterError::Taken(_) | AdapterError::InUse(_) => Self::new(Kind::Conflict, error),
            AdapterError::Files { .. } => Self::failed("adapter", error),
            AdapterError::Panicked(_) => Self::internal(error),
        }
    }
}

impl From<UnloadError> for Problem {
    fn from(error: UnloadError) -> Self {
        match error {
            UnloadError::Adapter(error) => error.into(),
            UnloadError::UnknownModel(_) => Self::new(Kind::UnknownModel, error),
            UnloadError::Ended(ended) => (&EngineError::from(ended)).into(),
        }
    }
}

impl From<AuditError> for Problem {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Store(error) => error.into(),
            AuditError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<CalibrationMismatch> for Problem {
    fn from(mismatch: CalibrationMismatch) -> Self {
        Self::new(Kind::Conflict, mismatch)
    }
}

impl From<JobError> for Problem {
    fn from(error: JobError) -> Self {
        let kind = match error {
            JobError::NotFound(_) => Kind::NotFound,
            JobError::Finished(_) | JobError::Unfinished(_) | JobError::NameTaken { .. } => Kind::Conflict,
            JobError::Full(..) | JobError::Draining => Kind::Unavailable,
            JobError::OwnerFull(..) => Kind::QuotaExceeded,
            JobError::TooLarge(_) => Kind::TooLarge,
            JobError::KeyReused => Kind::Invalid,
            JobError::Quota(exceeded) => return exceeded.into(),
            JobError::Dataset(error) => return error.into(),
            JobError::Store(error) => return error.into(),
            JobError::Internal(cause) => return Self::internal(cause),
        };
        Self::new(kind, error)
    }
}

impl From<RemoveError> for Problem {
    fn from(error: RemoveError) -> Self {
        match error {
            RemoveError::Adapter(error) => error.into(),
            RemoveError::Store(error) => error.into(),
        }
    }
}

impl From<DatasetError> for Problem {
    fn from(error: DatasetError) -> Self {
        match error {
            DatasetError::Unknown => Self::new(Kind::NotFound, error),
            DatasetError::InUse | DatasetError::TextsGone => Self::new(Kind::Conflict, error),
            DatasetError::Store(error) => error.into(),
            DatasetError::Internal(cause) => Self::internal(cause),
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Full => Self::new(Kind::Unavailable, error),
            error if error.is_retryable() => Self::failed("store", error),
            error => Self::internal(error),
        }
    }
}

impl From<&FailureRecord> for Problem {
    fn from(failure: &FailureRecord) -> Self {
        let kind = match failure.kind {
            FailureKind::UnknownModel => Kind::UnknownModel,
            FailureKind::WrongModel => return Self::fault("/model", &*failure.detail),
            // Which part of the request that is depends on the kind of job.
            FailureKind::UnfitTexts | FailureKind::UnfitSettings | FailureKind::NotFinite => {
                return Self::fault("", &*failure.detail);
            }
            FailureKind::ControlIsTarget => return Self::fault("/control", &*failure.detail),
            FailureKind::UnfitMethods => return Self::unfit(&failure.faults),
            FailureKind::ModelFailed
            | FailureKind::DeviceFailed
            | FailureKind::Unavailable
            | FailureKind::StoreFull
            | FailureKind::StoreFailed => Kind::Unavailable,
            FailureKind::ModelChanged | FailureKind::DatasetGone | FailureKind::UnfitCalibration => Kind::Conflict,
            FailureKind::TooLarge => Kind::TooLarge,
            FailureKind::DeadlineExceeded => Kind::DeadlineExceeded,
            FailureKind::Abandoned | FailureKind::Internal => Kind::Internal,
        };
        Self::new(kind, &*failure.detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::header::RETRY_AFTER;
    use axum::response::IntoResponse;

    #[test]
    fn refusals_name_the_limit_and_keep_internals() {
        let seconds = Duration::from_secs;
        let late = |estimate| Refusal::CannotMeetDeadline { estimate: seconds(estimate), available: seconds(5) };
        let full = Refusal::TooLarge { limit: "queue", allowed: 1, requested: 2 };
        let (audits, none) = ("/v1/audits", None::<&str>);
        let cases = [
            (Some(full), 413, ["engine.max_queue_tokens", audits], none),
            // A whole deadline is shorter than what is estimated.
            (Some(late(61)), 413, ["server.request_timeout", audits], none),
            (Some(late(60)), 503, ["server.request_timeout", audits], Some("1")),
            (None, 504, ["server.request_timeout", audits], none),
            (Some(Refusal::Busy { retry_after: seconds(7) }), 503, ["queue is full", ""], Some("7")),
            (Some(Refusal::Draining), 503, ["shutting down", ""], Some("5")),
            (Some(Refusal::ModelFailed("a secret".into())), 503, ["the model failed", ""], Some("30")),
            (Some(Refusal::DeviceLost("a secret".into())), 503, ["the device failed", ""], Some("30")),
        ];
        for (refusal, status, words, retry_after) in cases {
            let problem = Problem::of_scoring(refusal.map(ScorerError::Refused), seconds(60));
            let body = serde_json::to_string(&problem.body("", "")).unwrap();
            assert!(words.iter().all(|word| body.contains(word)) && !body.contains("secret"), "{body}");
            assert_eq!(body.contains(audits), words.contains(&audits), "{body}");
            let response = problem.into_response();
            let header = response.headers().get(RETRY_AFTER).map(|value| value.to_str().unwrap());
            assert_eq!((response.status().as_u16(), header), (status, retry_after), "{body}");
        }
    }
}
