//! Step 5: the plan that the report cites.

use super::report_file::{ReportFile, provenance};
use super::step::Finding;
use crate::audits::{AuditPlan, CitedPlan};
use crate::cli::plan_file::cite;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Checks that the audit keeps to its plan, and that the plan came first.
pub fn findings(file: &ReportFile, plan_file: Option<&Path>) -> Result<Vec<Finding>> {
    let cited = (file.kind == "audit" && file.report["plan"]["planned"] == true)
        .then(|| CitedPlan::deserialize(cited_fields(file)).context("`plan` of the report"));
    let Some(cited) = cited.transpose()? else {
        let detail = "the report cites no plan";
        return Ok(vec![if plan_file.is_some() { Finding::fails(detail) } else { Finding::not_checked(detail) }]);
    };
    let request = provenance(file)?.audit_request(None);
    let digest = file.provenance("dataset_digest").unwrap_or_default().to_owned();
    let plan = AuditPlan::new(&request, digest);
    let mut findings = vec![match AuditPlan::id(&plan.content()?) == cited.id {
        true => Finding::holds(format!("the request and the dataset are those of the plan {}", cited.id)),
        false => Finding::fails(format!("the request and the dataset are not those of the plan {}", cited.id)),
    }];
    let run = file.run();
    let times = [Some(cited.created.as_str()), run.started_at.as_deref()];
    let [created, started] = times.map(|time| time.and_then(|time| OffsetDateTime::parse(time, &Rfc3339).ok()));
    findings.push(match created.zip(started) {
        Some((created, started)) if created <= started => {
            Finding::holds("the plan is older than the run, by the signer's clock")
        }
        Some(_) => Finding::fails(format!("the plan was made at {}, after the run had begun", cited.created)),
        None => Finding::not_checked("the report does not say when the run began"),
    });
    if let Some(path) = plan_file {
        findings.push(match cite(path, &plan) {
            Ok(other) if other == cited => Finding::holds(format!("{} is that plan", path.display())),
            Ok(other) => Finding::fails(format!(
                "{} was made at {}, and the report says {}",
                path.display(),
                other.created,
                cited.created
            )),
            Err(error) => Finding::fails(format!("{error:#}")),
        });
    }
    Ok(findings)
}

/// The fields of the plan that the report cites.
fn cited_fields(file: &ReportFile) -> serde_json::Value {
    let plan = &file.report["plan"];
    serde_json::json!({ "id": plan["id"], "created": plan["created"] })
}
