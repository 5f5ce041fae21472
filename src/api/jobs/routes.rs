//! The routes that every kind of job has: to submit one, list them, get, cancel, follow and delete one.

use super::operations::document;
use super::view::{JobView, list_view};
use super::{JobBody, JobContext, JobDocument, JobResource, events, report, request};
use crate::api::extract::JsonBody;
use crate::api::middleware::Arrival;
use crate::api::problem::Problem;
use crate::api::query;
use crate::api::state::{ApiState, ClientState, RequestNote, RoutedJobs, RouterState, RunningJobs};
use crate::audits::{AuditKind, CalibrationKind, TestJob};
use crate::config::StoreSettings;
use crate::finetunes::FinetuneKind;
use crate::jobs::{JobError, JobKind, JobSnapshot, Jobs, Subject, Submission};
use crate::memorization::MemorizationKind;
use crate::store::{JobStatus, Store};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::{Extension, Json, routing};
use serde_json::Value;
use std::marker::PhantomData;
use utoipa_axum::router::OpenApiRouter;
use uuid::Uuid;

/// The kinds of job that a service has, in the order of the OpenAPI document's tags.
#[derive(Clone, Default)]
pub struct JobKinds(Vec<RegisteredKind>);

/// A kind of job.
#[derive(Clone, Copy)]
pub struct RegisteredKind {
    pub document: JobDocument,
    /// Its routes under `/v1`.
    pub(in crate::api) routes: fn() -> OpenApiRouter<RouterState>,
    start: fn(&JobContext, Store, StoreSettings) -> Box<dyn RunningJobs>,
}

impl JobKinds {
    /// The kinds of the program.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
            .with::<AuditKind>()
            .with::<CalibrationKind>()
            .with::<TestJob>()
            .with::<FinetuneKind>()
            .with::<MemorizationKind>()
    }

    /// These kinds and another one.
    #[must_use]
    pub fn with<K: JobResource>(mut self) -> Self {
        self.0.push(RegisteredKind {
            document: K::DOCUMENT,
            routes: job_routes::<K>,
            start: |context, store, settings| Box::new(Jobs::start(store, settings, K::with(context))),
        });
        self
    }

    pub fn iter(&self) -> impl Iterator<Item = &RegisteredKind> {
        self.0.iter()
    }

    /// Runs the jobs of all kinds that are in the store, and those that are submitted, from now on.
    #[must_use]
    pub fn start(&self, context: &JobContext, store: &Store, settings: &StoreSettings) -> RoutedJobs {
        let running = self.iter().map(|kind| (kind.start)(context, store.clone(), settings.clone())).collect();
        RoutedJobs::new(running, store.clone())
    }
}

/// The routes of a kind of job with their part of the OpenAPI document.
fn job_routes<K: JobResource>() -> OpenApiRouter<RouterState> {
    let jobs = K::DOCUMENT.path();
    OpenApiRouter::with_openapi(document::<K>())
        .route(&jobs, routing::post(submit::<K>).get(list::<K>))
        .route(&format!("{jobs}/{{id}}"), routing::get(get::<K>).delete(delete::<K>))
        .route(&format!("{jobs}/{{id}}/cancel"), routing::post(cancel::<K>))
        .route(&format!("{jobs}/{{id}}/events"), routing::get(follow::<K>))
        .route(&format!("{jobs}/{{id}}/report"), routing::get(report_of_one::<K>))
}

/// The id of a job of one kind in a path.
pub struct JobId<K>(pub Uuid, pub PhantomData<K>);

impl<K: JobKind> JobId<K> {
    /// The id that a text is. Where it is no UUID, there is no job of this id.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let id = text.parse().map_err(|_| JobError::NotFound(K::NAME))?;
        Ok(Self(id, PhantomData))
    }
}

impl<S: Send + Sync, K: JobKind> FromRequestParts<S> for JobId<K> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let text = Path::<String>::from_request_parts(parts, state).await.ok();
        let id = Self::parse(&text.map(|Path(text)| text).unwrap_or_default())?;
        RequestNote::from_extensions(&parts.extensions).update(|work| work.job = Some(id.0.to_string()));
        Ok(id)
    }
}

async fn submit<K: JobResource>(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<K::Body>,
) -> Result<Response, Problem> {
    let jobs = &state.jobs.kind::<K>()?;
    let idempotency_key = request::idempotency_key(&headers)?;
    let dataset = request::named_dataset(jobs, body.dataset(), idempotency_key.as_deref()).await?;
    let prepared = K::prepare(&state, body, dataset, idempotency_key.as_deref()).await?;
    request::refuse_lost_work(&state)?;
    let wait = request::wait(&state, &headers)?;
    let job = jobs.submit(Submission { idempotency_key, ..prepared }, &state.client.quota).await?;
    let job = request::awaited(&state, jobs, job, wait).await;
    let body = view::<K>(&state, &job, &arrival).await?;
    Ok(request::accepted(&job, K::DOCUMENT.location(job.id), &headers, body))
}

async fn list<K: JobResource>(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<Value>, Problem> {
    let page = state.jobs.kind::<K>()?.list(&query::jobs(&uri)?).await?;
    Ok(Json(list_view::<K>(page, arrival.id())?))
}

async fn get<K: JobResource>(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<K>,
) -> Result<Response, Problem> {
    let job = state.jobs.kind::<K>()?.get(id).await?;
    view::<K>(&state, &job, &arrival).await
}

async fn cancel<K: JobResource>(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    JobId(id, _): JobId<K>,
) -> Result<Response, Problem> {
    let job = state.jobs.kind::<K>()?.cancel(id).await?;
    view::<K>(&state, &job, &arrival).await
}

async fn delete<K: JobResource>(
    ClientState(state): ClientState,
    JobId(id, _): JobId<K>,
) -> Result<StatusCode, Problem> {
    let _deleting = state.client.quota.begin_deleting().await;
    state.jobs.kind::<K>()?.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn follow<K: JobResource>(
    ClientState(state): ClientState,
    JobId(id, _): JobId<K>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    events::follow(&state, &state.jobs.kind::<K>()?, id, &headers).await
}

async fn report_of_one<K: JobResource>(
    ClientState(state): ClientState,
    JobId(id, _): JobId<K>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    report::respond::<K>(&state, id, &uri, &headers).await
}

/// The job with its report, where there is one.
async fn view<K: JobResource>(
    state: &ApiState,
    job: &JobSnapshot<Subject<K>>,
    arrival: &Arrival,
) -> Result<Response, Problem> {
    let report = match job.status {
        JobStatus::Succeeded => state.jobs.kind::<K>()?.report(job.id).await?,
        _ => None,
    };
    // It is copied into the answer.
    state.memory.grow_to(2 * report.as_ref().map_or(0, String::len) as u64)?;
    state.json(JobView::<K>::with_report(job.clone(), report, arrival.id())?).await
}
