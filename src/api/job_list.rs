//! The query of a list of jobs, such as `GET /v1/audits`.

use super::page_query::PageQuery;
use super::problem::Problem;
use super::route_rules::read_parameters;
use crate::jobs::JobQuery;
use axum::http::Uri;
use mia::json::by_name;

/// Which jobs the query asks for.
///
/// # Errors
/// All that is wrong with its values.
pub fn query(uri: &Uri) -> Result<JobQuery, Problem> {
    let (mut page, mut status, mut model) = (PageQuery::default(), None, None);
    read_parameters(uri, |name, value| {
        match name {
            "status" => status = Some(by_name(&value)?),
            "model" => model = Some(value),
            _ => page.set(name, &value)?,
        }
        Ok(())
    })?;
    Ok(JobQuery { status, model, after: page.after, limit: page.limit })
}

#[cfg(test)]
mod tests {
    use super::query;
    use crate::store::JobStatus;

    #[test]
    fn values_are_read_or_named() {
        let read = |text: &str| query(&format!("/v1/audits?{text}").parse().unwrap());
        let all = read("").unwrap();
        assert_eq!((all.status, all.model, all.after, all.limit), (None, None, None, 500));
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
    }
}
