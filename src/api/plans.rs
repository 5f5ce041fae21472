//! `/v1/plans`: what an audit will do, fixed before anything is scored.

use super::audit_request::AuditBody;
use super::extract::JsonBody;
use super::jobs::{JobBody, rendered, request};
use super::problem::responses::SubmitProblems;
use super::problem::{Kind, Problem};
use super::score_calibration;
use super::state::{ApiState, ClientState};
use crate::audits::{AuditKind, AuditPlan, AuditRequest, CalibrationSource, CitedPlan, ServedForecast};
use crate::jobs::Submission;
use crate::store::{MAX_PLANS, PlanRow};
use axum::Json;
use axum::http::StatusCode;
use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::ToSchema;

/// A plan.
#[derive(Serialize, ToSchema)]
#[schema(as = Plan)]
pub struct PlanView {
    /// `sha256:` and the SHA-256 of `content`.
    #[schema(examples("sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"))]
    id: String,
    /// When it was made first.
    #[serde(with = "time::serde::rfc3339")]
    created: OffsetDateTime,
    /// All that decides the report of an audit, as JSON text: the digest of the texts, model, methods, metrics, primary method, control,
    /// grouping, level and seeds.
    content: String,
    /// Requests to models that are served elsewhere, with their tokens and cost; absent if all models run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    served: Option<ServedForecast>,
}

/// Plan an audit.
///
/// Takes what `POST /v1/audits` takes, scores nothing, and keeps what was asked for with the time. An audit of the same request that
/// names the plan is refused if it differs in anything that decides its report, which then cites the plan.
#[utoipa::path(
    post,
    path = "/v1/plans",
    operation_id = "plan_audit",
    tag = "audits",
    request_body(content = AuditBody, example = json!({
        "samples": [
            { "id": "m", "text": "It was the best of times, it was the worst of times.", "label": 1 },
            { "id": "n", "text": "The committee met again on a rainy Tuesday.", "label": 0 }
        ],
        "methods": ["loss"]
    })),
    responses((status = 201, description = "The plan; one that is known keeps its time", body = PlanView), SubmitProblems)
)]
pub async fn submit(
    ClientState(state): ClientState,
    JsonBody(body): JsonBody<AuditBody>,
) -> Result<(StatusCode, Json<PlanView>), Problem> {
    if body.plan().is_some() {
        return Err(Problem::fault("/plan", "a plan cites no other"));
    }
    let dataset = request::named_dataset(&state.jobs.kind::<AuditKind>()?, body.dataset(), None).await?;
    let body = rendered(&state, body).await?;
    let checking = state.clone();
    let planning = move || {
        let audit = body.check(&checking, dataset)?;
        let totals = audit.samples.totals().map_err(Problem::internal)?;
        let (texts, bytes) = (totals.samples as u64, totals.text_bytes);
        let served = ServedForecast::new(&audit.request, texts, bytes, checking.scorer.pool());
        Ok::<_, Problem>((planned(&audit)?, audit.request.evidence, served))
    };
    let ((id, content), evidence, served) = state.scorer.workers().run(planning).await??;
    if let Some(CalibrationSource::Stored(calibration)) = &evidence.calibration {
        score_calibration::named(&state, calibration).await?;
    }
    let row = state.jobs.store().add_plan(state.jobs.client(), &id, &content).await?;
    let full =
        || Problem::new(Kind::Conflict, format!("there are {MAX_PLANS} plans of this client, the most that are kept"));
    let PlanRow { content, created_at } = row.ok_or_else(full)?;
    Ok((StatusCode::CREATED, Json(PlanView { id, created: created_at, content, served })))
}

/// The id and the content of the plan that an audit keeps to.
fn planned(audit: &Submission<AuditRequest>) -> Result<(String, String), Problem> {
    let digest = audit.samples.digest().map_err(Problem::internal)?;
    let content = AuditPlan::new(&audit.request, digest).content().map_err(Problem::internal)?;
    Ok((AuditPlan::id(&content), content))
}

/// The audit with the plan that it cites.
pub async fn cite(
    state: &ApiState,
    audit: Submission<AuditRequest>,
    id: &str,
) -> Result<Submission<AuditRequest>, Problem> {
    let row = state.jobs.store().plan(state.jobs.client(), id).await?;
    let row = row.ok_or_else(|| Problem::fault("/plan", format!("there is no plan `{id}`")))?;
    let planning = move || planned(&audit).map(|plan| (audit, plan));
    let (mut audit, (computed, content)) = state.scorer.workers().run(planning).await??;
    if computed != id {
        let read = |content: &str| serde_json::from_str::<AuditPlan>(content).map_err(Problem::internal);
        let field = read(&row.content)?.difference(&read(&content)?).unwrap_or("its form");
        return Err(Problem::fault("/plan", format!("the audit is not the one that was planned: `{field}` differs")));
    }
    let created = row.created_at.format(&Rfc3339).map_err(Problem::internal)?;
    audit.request.evidence.plan = Some(CitedPlan { id: computed, created });
    Ok(audit)
}
