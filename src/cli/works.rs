//! The works that an audit tests, for people: each among the known works.

use super::report_format::{hanging, part};
use super::text_table::{TextColumn, TextTable};
use crate::audits::{Decisions, WorkFindings};
use serde_json::Value;

/// The width that the name of a work may be cut to.
const NAME: usize = 24;

/// A line a work, those with the lowest p-values first; nothing where no text names a document or nothing is known.
pub fn render(report: &Value, width: Option<usize>) -> String {
    let works: Option<Vec<WorkFindings>> = part(&report["works"]);
    let (Some(mut works), Some(Decisions { method, fdr, .. })) = (works, part(&report["decisions"])) else {
        return String::new();
    };
    works.sort_by(|a, b| a.p_value.total_cmp(&b.p_value).then(b.score.total_cmp(&a.score)));
    let numbers = ["p-value", "above", "mean", "passages"].map(TextColumn::numbers);
    let columns = [TextColumn::words("work").cut_to(NAME)].into_iter().chain(numbers);
    let mut table = TextTable::new(columns.chain([TextColumn::words("listed")]));
    for WorkFindings { document, passages, score, known_above, p_value, listed, .. } in works {
        let listed = if listed { "yes" } else { "no" }.to_owned();
        let [p_value, score] = [p_value, score].map(|number| format!("{number:.4}"));
        table.add([document.to_string(), p_value, known_above.to_string(), score, passages.to_string(), listed]);
    }
    let entries = report["methods"].as_array().into_iter().flatten();
    let known =
        entries.filter(|entry| entry["label"] == *method).find_map(|entry| entry["calibration"]["clusters"].as_u64());
    let known = known.unwrap_or_default();
    let title = format!("works among {known} known works by {method}; listed at a false discovery rate of {fdr}");
    format!("{}\n{}\n", hanging(&title, width), table.render(width))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_lowest_p_value_comes_first() {
        let work = |document: &str, p_value: f64, listed: bool| {
            json!({ "document": document, "passages": 8, "score": -2.5, "known_above": 1, "p_value": p_value,
                "p_value_adjusted": p_value, "listed": listed })
        };
        let report = json!({
            "works": [work("b.txt", 0.5, false), work("a.txt", 0.05, true)],
            "decisions": { "method": "loss", "procedure": "bh", "fdr": 0.1, "tested": 2, "rejected": 1, "minimum_discoveries": 1 },
            "methods": [{ "label": "loss", "calibration": { "clusters": 19 } }],
        });
        let expected = "works among 19 known works by loss; listed at a false discovery rate of 0.1\n\n\
            work   p-value  above     mean  passages  listed\n\
            a.txt   0.0500      1  -2.5000         8  yes\n\
            b.txt   0.5000      1  -2.5000         8  no\n\n";
        assert_eq!(render(&report, Some(80)), expected);
        assert_eq!(render(&json!({ "works": [] }), None), "");
    }
}
