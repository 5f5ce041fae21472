//! Query parameters of a request.

use super::check::RequestFaults;
use super::problem::{PointedFault, Problem};
use crate::store::JobQuery;
use axum::extract::Query;
use axum::http::Uri;
use mia::json::by_name;
use uuid::Uuid;

/// Maximum and default number of entries in a page.
const MAX_LIMIT: usize = 500;

/// The parameters, decoded; empty for a query that cannot be decoded.
pub fn parameters(uri: &Uri) -> Vec<(String, String)> {
    Query::try_from_uri(uri).map(|Query(pairs)| pairs).unwrap_or_default()
}

/// Hands every parameter to `set`, by name, and collects the faults that it returns.
pub fn read_parameters(uri: &Uri, mut set: impl FnMut(&str, String) -> Result<(), String>) -> Result<(), Problem> {
    let mut faults = RequestFaults::default();
    for (name, value) in parameters(uri) {
        if let Err(detail) = set(&name, value) {
            faults.keep(PointedFault::of_parameter(name, detail));
        }
    }
    faults.finish()
}

/// The page of a list that the query asks for: the entry after which it begins, and its length. Other parameters go to `set`.
pub fn page(
    uri: &Uri,
    mut set: impl FnMut(&str, String) -> Result<(), String>,
) -> Result<(Option<Uuid>, usize), Problem> {
    let (mut after, mut limit) = (None, MAX_LIMIT);
    read_parameters(uri, |name, value| {
        match name {
            "after" => after = Some(value.parse().map_err(|_| "it is not the `next` of a page")?),
            "limit" => {
                let given = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                limit = given.ok_or_else(|| format!("it must be a whole number from 1 to {MAX_LIMIT}"))?;
            }
            _ => set(name, value)?,
        }
        Ok(())
    })?;
    Ok((after, limit))
}

/// The jobs that the query of a list, such as `GET /v1/audits`, asks for.
pub fn jobs(uri: &Uri) -> Result<JobQuery, Problem> {
    let (mut status, mut model) = (None, None);
    let (after, limit) = page(uri, |name, value| {
        match name {
            "status" => status = Some(by_name(&value)?),
            "model" => model = Some(value),
            _ => {}
        }
        Ok(())
    })?;
    Ok(JobQuery { status, model, after, limit })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::JobStatus;

    fn read(text: &str) -> Result<JobQuery, Problem> {
        jobs(&format!("/v1/audits?{text}").parse().unwrap())
    }

    #[test]
    fn values_are_read_or_their_faults_are_named() {
        let all = read("").unwrap();
        assert_eq!((all.status, all.model, all.after, all.limit), (None, None, None, 500));
        let id = Uuid::now_v7();
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
