//! The routes that every kind of job has: to submit one, list them, get, cancel, follow and delete one.

use super::client_state::{ClientState, RouterState};
use super::extract::JsonBody;
use super::job_id::JobId;
use super::job_operations::document;
use super::job_resource::{JobBody, JobResource};
use super::job_view::{JobList, JobView};
use super::middleware::Arrival;
use super::problem::Problem;
use super::state::ApiState;
use super::{answer, job_events, job_list, job_request};
use crate::jobs::{JobSnapshot, Submission};
use crate::store::JobStatus;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use axum::routing;
use axum::{Extension, Json};
use utoipa_axum::router::OpenApiRouter;

/// The routes of a kind of job with their part of the OpenAPI document.
pub fn job_routes<K: JobResource>() -> OpenApiRouter<RouterState> {
    let jobs = K::DOCUMENT.path();
    OpenApiRouter::with_openapi(document::<K>())
        .route(&jobs, routing::post(submit::<K>).get(list::<K>))
        .route(&format!("{jobs}/{{id}}"), routing::get(get::<K>).delete(delete::<K>))
        .route(&format!("{jobs}/{{id}}/cancel"), routing::post(cancel::<K>))
        .route(&format!("{jobs}/{{id}}/events"), routing::get(events::<K>))
}

async fn submit<K: JobResource>(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<K::Body>,
) -> Result<Response, Problem> {
    let jobs = &state.jobs.kind::<K>()?;
    let idempotency_key = job_request::idempotency_key(&headers)?;
    let dataset = job_request::named_dataset(jobs, body.dataset(), idempotency_key.as_deref()).await?;
    let prepared = K::prepare(&state, body, dataset, idempotency_key.as_deref()).await?;
    job_request::refuse_lost_work(&state)?;
    let job = jobs.submit(Submission { idempotency_key, ..prepared }).await?;
    let job = job_request::awaited(&state, jobs, job, &headers).await;
    let body = view::<K>(&state, &job, &arrival).await?;
    Ok(job_request::accepted(&job, K::DOCUMENT.location(job.id), &headers, body))
}

async fn list<K: JobResource>(
    ClientState(state): ClientState,
    Extension(arrival): Extension<Arrival>,
    uri: Uri,
) -> Result<Json<JobList<K>>, Problem> {
    let page = state.jobs.kind::<K>()?.list(&job_list::query(&uri)?).await?;
    Ok(Json(JobList::new(page, arrival.id())?))
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
    state.jobs.kind::<K>()?.delete(id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn events<K: JobResource>(
    ClientState(state): ClientState,
    JobId(id, _): JobId<K>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    job_events::follow(&state, &state.jobs.kind::<K>()?, id, &headers).await
}

/// The job with its report, where there is one.
async fn view<K: JobResource>(
    state: &ApiState,
    job: &JobSnapshot<K::Subject>,
    arrival: &Arrival,
) -> Result<Response, Problem> {
    let report = match job.status {
        JobStatus::Succeeded => state.jobs.kind::<K>()?.report(job.id).await?,
        _ => None,
    };
    answer::json(state, JobView::<K>::new(job.clone(), report, arrival.id())?).await
}
