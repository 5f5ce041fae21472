//! `/v1/audits/{id}/compare/{other}`: how two audits differ on the samples that both have.

use super::accept::preferred;
use super::extract::PathNames;
use super::jobs::JobId;
use super::page::{self, HTML, JSON};
use super::problem::responses::StateProblems;
use super::problem::{Kind, PointedFault, Problem};
use super::query::read_parameters;
use super::state::{ApiState, ClientState};
use crate::audits::{AuditComparison, AuditError, AuditKind, ComparisonQuestion, LoadedScores};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::Response;
use pages::{DrawnScores, Page, Provenance};
use tokio::sync::Semaphore;
use uuid::Uuid;

/// Comparisons at once; each has all scores of two audits in memory.
static COMPARISONS: Semaphore = Semaphore::const_new(2);

/// Compare two audits.
///
/// On the samples that both have: texts are paired with equal texts, and methods by their labels. The same audit of two versions of a
/// model shows what changed between them. With `question=retain`, audit a is that of a model that never saw the members, and audit b that of
/// one that was made to forget them: each method gets the difference between their AUROCs with a two-sided test, and PrivLeak.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}/compare/{other}",
    operation_id = "compare_audits",
    tag = "audits",
    params(
        ("id" = String, Path, description = "Id of audit a"),
        ("other" = String, Path, description = "Id of audit b"),
        ("question" = inline(Option<ComparisonQuestion>), Query, description = "`retain` adds `unlearning`: whether model b, which was made to \
         forget the members, treats them as model a does, which never saw them"),
        ("Accept" = Option<String>, Header, description = "`application/json` or `text/html`, a page of the same", example = "text/html")
    ),
    responses(
        (status = 200, description = "Differences of b from a", content(
            (AuditComparison = "application/json"),
            (String = "text/html")
        )),
        StateProblems
    )
)]
pub async fn compare(
    ClientState(state): ClientState,
    PathNames((a, b)): PathNames<(String, String)>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let mut question: Option<ComparisonQuestion> = None;
    read_parameters(&uri, |_, value| {
        question = Some(value.try_into()?);
        Ok(())
    })?;
    let is_page = preferred(&headers, [(JSON, false), (HTML, true)]);
    let is_page = is_page.ok_or_else(|| Problem::not_acceptable(&[JSON, HTML]))?;
    let ids = [JobId::<AuditKind>::parse(&a)?.0, JobId::<AuditKind>::parse(&b)?.0];
    // Fails only where the semaphore is closed, which it never is.
    let _place = COMPARISONS.acquire().await.map_err(Problem::internal)?;
    let (a, b) = (loaded(&state, ids[0]).await?, loaded(&state, ids[1]).await?);
    let compared = move |wanted: &dyn Fn() -> bool| {
        AuditComparison::new([(ids[0].to_string(), &a), (ids[1].to_string(), &b)], question, wanted)
    };
    let comparison = state.scorer.workers().run_behind(compared).await?;
    let comparison =
        comparison.map_err(|fault| Problem::invalid(vec![PointedFault::of_parameter("question", fault)], 1))?;
    if !is_page {
        let mut answer = state.json(comparison).await?;
        answer.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
        return Ok(answer);
    }
    let draw = move || {
        let report = serde_json::to_value(comparison)?;
        let page = Page {
            kind: "comparison",
            report: &report,
            scores: &DrawnScores::default(),
            texts: &[],
            provenance: &Provenance::default(),
        };
        Ok::<_, serde_json::Error>(page.html())
    };
    Ok(page::answer(state.scorer.workers().run(draw).await?.map_err(Problem::internal)?))
}

/// All scores of an audit that has succeeded.
async fn loaded(state: &ApiState, id: Uuid) -> Result<LoadedScores, Problem> {
    let audits = state.jobs.kind::<AuditKind>()?;
    let audit = audits.get(id).await?;
    let Some(scores) = audits.scores(id).await? else {
        let detail = format!("audit {id} is {}; audits can be compared once they have succeeded", audit.status.name());
        return Err(Problem::new(Kind::Conflict, detail));
    };
    let scores = scores.load().await?;
    let (rows, all) = (scores.rows.len(), scores.header.rows);
    if rows != all {
        return Err(AuditError::Internal(format!("audit {id} has {rows} of {all} rows")).into());
    }
    Ok(scores)
}
