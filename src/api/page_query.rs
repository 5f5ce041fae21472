//! The part of a query that chooses a page of a list: `limit` and `after`.

use super::problem::Problem;
use super::route_rules::read_parameters;
use axum::http::Uri;
use uuid::Uuid;

/// Maximum and default number of entries in a page.
const MAX_LIMIT: usize = 500;

/// Which page of a list to show, newest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Only what is older than this entry, which may be gone.
    pub after: Option<Uuid>,
    /// Maximum number of entries.
    pub limit: usize,
}

impl PageQuery {
    /// Reads the query of a list that has no other parameters.
    ///
    /// # Errors
    /// All that is wrong with its values.
    pub fn read(uri: &Uri) -> Result<Self, Problem> {
        let mut page = Self::default();
        read_parameters(uri, |name, value| page.set(name, &value))?;
        Ok(page)
    }

    /// Sets one parameter; unknown names have been refused before.
    ///
    /// # Errors
    /// What is wrong with its value.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "after" => self.after = Some(value.parse().map_err(|_| "it is not the `next` of a page")?),
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
                self.limit = limit.ok_or_else(|| format!("it must be a whole number from 1 to {MAX_LIMIT}"))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Default for PageQuery {
    /// The first page.
    fn default() -> Self {
        Self { after: None, limit: MAX_LIMIT }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<PageQuery, Problem> {
        PageQuery::read(&format!("/v1/datasets?{query}").parse().unwrap())
    }

    #[test]
    fn a_page_is_read_or_its_faults_are_named() {
        let id = Uuid::now_v7();
        assert_eq!(read("").unwrap(), PageQuery { after: None, limit: 500 });
        assert_eq!(read(&format!("after={id}&limit=7")).unwrap(), PageQuery { after: Some(id), limit: 7 });
        let problem = serde_json::to_value(read("after=x&limit=0").unwrap_err().body("", "")).unwrap();
        let errors = problem["errors"].as_array().unwrap().iter();
        let names: Vec<&str> = errors.map(|error| error["parameter"].as_str().unwrap()).collect();
        assert_eq!(names, ["after", "limit"]);
        for limit in ["501", "-1", "1.5", "", "9999999999999999999999"] {
            assert!(read(&format!("limit={limit}")).is_err(), "{limit}");
        }
    }
}
