//! Count of the texts scored, and the fault of the first that was not.

use crate::samples::RecordPlace;
use crate::table::ResultRow;
use crate::wire::number_of;
use anyhow::{Result, bail};
use serde_json::Value;

/// Counts of results.
#[derive(Debug, Default)]
pub struct ScoreTally {
    total: usize,
    failed: usize,
    /// Fault of the first that failed.
    first: Option<String>,
}

impl ScoreTally {
    /// Counts the result of a text at this place; one without any score has failed.
    pub fn add(&mut self, place: RecordPlace, row: &ResultRow) {
        self.total += 1;
        if row.get("scores").and_then(Value::as_object).is_some_and(|scores| !scores.is_empty()) {
            return;
        }
        self.failed += 1;
        self.first.get_or_insert_with(|| {
            let detail = row.get("errors").and_then(|errors| errors.get(0)?.get("detail")?.as_str());
            let detail = detail.unwrap_or("no method gave a score");
            // A record that is no text names its place itself.
            match row.get("errors").and_then(|errors| errors.get(0)?.get("code")?.as_str()) {
                Some("invalid_line") => detail.to_owned(),
                _ => format!("{place}: {detail}"),
            }
        });
    }

    pub fn total(&self) -> usize {
        self.total
    }

    /// Says on stderr how many texts could not be scored.
    ///
    /// # Errors
    /// The same where that are all of them or, if `strict`, any.
    pub fn conclude(self, strict: bool) -> Result<()> {
        let Some(first) = self.first else { return Ok(()) };
        let closing =
            format!("{} of {} could not be scored; first: {first}", self.failed, number_of(self.total, "text"));
        if strict || self.failed == self.total {
            bail!(closing);
        }
        eprintln!("warning: {closing}");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tally(rows: &[Value]) -> ScoreTally {
        let mut tally = ScoreTally::default();
        let places = (1..).map(|number| RecordPlace::Line(2 * number));
        places.zip(rows).for_each(|(place, row)| tally.add(place, row.as_object().unwrap()));
        tally
    }

    #[test]
    fn all_failures_are_an_error_and_one_is_if_strict() {
        let scored = json!({"scores": {"loss": -1.0}, "errors": []});
        let short = json!({"scores": {}, "errors": [{"code": "too_short", "detail": "too few tokens"}]});
        let broken = json!({"scores": {}, "errors": [{"code": "invalid_line", "detail": "line 3: not JSON"}]});
        assert!(tally(std::slice::from_ref(&scored)).conclude(true).is_ok());
        assert!(tally(&[scored.clone(), short.clone()]).conclude(false).is_ok());
        let said = tally(&[scored, short.clone()]).conclude(true).unwrap_err().to_string();
        assert_eq!(said, "1 of 2 texts could not be scored; first: line 4: too few tokens");
        let said = tally(&[broken, short]).conclude(false).unwrap_err().to_string();
        assert_eq!(said, "2 of 2 texts could not be scored; first: line 3: not JSON");
    }
}
