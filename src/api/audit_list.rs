//! The query of `GET /v1/audits`.

use super::check::RequestFaults;
use super::problem::{PointedFault, Problem};
use super::route_rules;
use crate::audits::AuditFilter;
use crate::store::JobStatus;
use crate::wire::by_name;
use axum::http::Uri;

/// The most audits of a page, and how many there are if the client does not say.
const MAX_LIMIT: usize = 500;

/// Which audits the query asks for.
///
/// # Errors
/// All that is wrong with its values.
pub fn filter(uri: &Uri) -> Result<AuditFilter, Problem> {
    let (mut filter, mut faults) =
        (AuditFilter { status: None, model: None, after: None, limit: MAX_LIMIT }, RequestFaults::default());
    for (name, value) in route_rules::parameters(uri) {
        if let Err(detail) = set(&mut filter, &name, value) {
            faults.keep(PointedFault::of_parameter(name, detail));
        }
    }
    faults.finish()?;
    Ok(filter)
}

/// Takes over one parameter; those of other names have been refused before.
fn set(filter: &mut AuditFilter, name: &str, value: String) -> Result<(), String> {
    match name {
        "status" => filter.status = Some(by_name(&value, &JobStatus::ALL.map(|status| (status.name(), status)))?),
        "model" => filter.model = Some(value),
        "after" => filter.after = Some(value.parse().map_err(|_| "it is not the id of an audit".to_owned())?),
        "limit" => {
            let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
            filter.limit = limit.ok_or_else(|| format!("it must be a whole number from 1 to {MAX_LIMIT}"))?;
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{MAX_LIMIT, filter};
    use crate::store::JobStatus;

    #[test]
    fn values_are_read_or_named() {
        let read = |query: &str| filter(&format!("/v1/audits?{query}").parse().unwrap());
        let all = read("").unwrap();
        assert_eq!((all.status, all.model, all.after, all.limit), (None, None, None, MAX_LIMIT));
        let id = uuid::Uuid::now_v7();
        let some = read(&format!("status=running&model=a%2Fb&after={id}&limit=7")).unwrap();
        assert_eq!((some.status, some.after, some.limit), (Some(JobStatus::Running), Some(id), 7));
        assert_eq!(some.model.as_deref(), Some("a/b"));
        let problem = read("status=done&after=x&limit=0").unwrap_err().body("", "");
        let problem = serde_json::to_value(problem).unwrap();
        let errors = problem["errors"].as_array().unwrap().iter();
        let names: Vec<&str> = errors.map(|error| error["parameter"].as_str().unwrap()).collect();
        assert_eq!(names, ["status", "after", "limit"]);
        assert!(problem["errors"][0]["detail"].as_str().unwrap().contains("`queued` or `running`"), "{problem}");
        for limit in ["501", "-1", "1.5", "", "9999999999999999999999"] {
            assert!(read(&format!("limit={limit}")).is_err(), "{limit}");
        }
    }
}
