//! Plans of audits as files.

use crate::audits::{AuditPlan, CitedPlan};
use crate::new_file::NewFile;
use anyhow::{Context, Result, anyhow, ensure};
use serde::{Deserialize, Serialize};
use std::path::Path;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A plan as a file of JSON, with the fields that `POST /v1/plans` answers with.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    id: String,
    created: String,
    content: String,
}

/// Writes a plan with the present time. A file that is there is left alone: its time is earlier.
///
/// # Errors
/// Where the file is there, or cannot be written.
pub fn write(target: &Path, plan: &AuditPlan) -> Result<()> {
    ensure!(!target.exists(), "{} exists, and a plan keeps its time", target.display());
    let content = plan.content()?;
    let (id, created) = (AuditPlan::id(&content), OffsetDateTime::now_utc().format(&Rfc3339)?);
    let file = PlanFile { id, created, content };
    let json = format!("{}\n", serde_json::to_string_pretty(&file)?);
    let written = NewFile::create(target).and_then(|file| file.write(json.as_bytes()));
    written.with_context(|| format!("cannot write {}", target.display()))?;
    eprintln!("{}: the SHA-256 of the plan; publish it, so that its time can be shown", file.id);
    Ok(())
}

/// The plan of a file, which an audit keeps to.
///
/// # Errors
/// Where the file holds no plan, or another one.
pub fn cite(file: &Path, plan: &AuditPlan) -> Result<CitedPlan> {
    let name = file.display();
    let json = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let PlanFile { id, created, content } =
        serde_json::from_str(&json).with_context(|| format!("{name} is no plan"))?;
    ensure!(AuditPlan::id(&content) == id, "{name} was changed: its content has another SHA-256 than its id");
    if plan.content()? == content {
        return Ok(CitedPlan { id, created });
    }
    let planned: AuditPlan = serde_json::from_str(&content).with_context(|| format!("{name} is no plan"))?;
    let field = planned.difference(plan).unwrap_or("its form");
    Err(anyhow!("--plan: the audit is not the one that {name} plans: `{field}` differs"))
}
