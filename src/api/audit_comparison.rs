//! `/v1/audits/{id}/compare/{other}`: how two audits differ on the samples that both have.

use super::accept::preferred;
use super::extract::PathNames;
use super::jobs::JobId;
use super::page::{self, HTML, JSON};
use super::problem::responses::StateProblems;
use super::problem::{Kind, Problem};
use super::state::{ApiState, ClientState};
use crate::audits::{AuditError, AuditKind, LoadedScores, MethodDifference, PairedSamples, audit_difference};
use crate::pool::ModelInfo;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use mia::statistics::Bootstrap;
use pages::{DrawnScores, Page, Provenance};
use serde::Serialize;
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use uuid::Uuid;

/// Comparisons at once; each has all scores of two audits in memory.
static COMPARISONS: Semaphore = Semaphore::const_new(2);

/// Differences between two audits, a and b.
#[derive(Serialize, ToSchema)]
pub struct AuditComparison {
    a: ComparedAudit,
    b: ComparedAudit,
    samples: PairedCounts,
    /// The bootstrap of the intervals; each replicate draws the same samples for both audits.
    bootstrap: Bootstrap,
    /// One entry for each method that both audits have under the same label.
    methods: Vec<MethodDifference>,
}

/// One of two audits.
#[derive(Serialize, ToSchema)]
pub struct ComparedAudit {
    id: String,
    model: ModelInfo,
}

/// Number of samples that two audits have in common.
#[derive(Serialize, ToSchema)]
pub struct PairedCounts {
    /// Samples of the same text and label in both.
    paired: usize,
    only_a: usize,
    only_b: usize,
    /// Samples whose label is another one in the other audit; they are left out.
    label_conflicts: usize,
}

/// Compare two audits.
///
/// On the samples that both have: texts are paired with equal texts, and methods by their labels. The same audit of two versions of a
/// model shows what changed between them.
#[utoipa::path(
    get,
    path = "/v1/audits/{id}/compare/{other}",
    operation_id = "compare_audits",
    tag = "audits",
    params(
        ("id" = String, Path, description = "Id of audit a"),
        ("other" = String, Path, description = "Id of audit b"),
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
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let is_page = preferred(&headers, [(JSON, false), (HTML, true)]);
    let is_page = is_page.ok_or_else(|| Problem::not_acceptable(&[JSON, HTML]))?;
    let ids = [JobId::<AuditKind>::parse(&a)?.0, JobId::<AuditKind>::parse(&b)?.0];
    // Fails only where the semaphore is closed, which it never is.
    let _place = COMPARISONS.acquire().await.map_err(Problem::internal)?;
    let (a, b) = (loaded(&state, ids[0]).await?, loaded(&state, ids[1]).await?);
    let compared = move |wanted: &dyn Fn() -> bool| {
        let paired = PairedSamples::new(&a, &b);
        let bootstrap = Bootstrap::default();
        let methods = audit_difference(&paired.labels, &paired.clusters, &paired.methods, Some(&bootstrap), wanted);
        let [a, b] = [(ids[0], a), (ids[1], b)]
            .map(|(id, scores)| ComparedAudit { id: id.to_string(), model: scores.header.model.clone() });
        let PairedSamples { labels, only_a, only_b, label_conflicts, .. } = paired;
        AuditComparison {
            a,
            b,
            samples: PairedCounts { paired: labels.len(), only_a, only_b, label_conflicts },
            bootstrap,
            methods,
        }
    };
    let comparison = state.scorer.workers().run_behind(compared).await?;
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
