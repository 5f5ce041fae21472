//! The page of a report.

use crate::DrawnScores;
use crate::audit;
use crate::evidence;
use crate::generic;
use crate::memorization;
use crate::numbers::Part;
use crate::strips::TextStrip;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

/// Content of the style element of every page.
pub const STYLE: &str = include_str!("style.css");

/// Origin of a report, beside what it says itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// Id of the job, if a service ran it.
    pub job: Option<String>,
    /// End of the job, by RFC 3339.
    pub ended: Option<String>,
    /// The command that made it, if one did.
    pub command: Option<String>,
    /// Id of the model asked about, for reports that do not name it.
    pub model: Option<String>,
}

/// A report and what its page needs beside it.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Kind of the job, such as `audit`.
    pub kind: &'a str,
    /// The report as its clients read it.
    pub report: &'a Value,
    /// Scores that are drawn; empty if there are none.
    pub scores: &'a DrawnScores,
    /// Texts that are shown token by token.
    pub texts: &'a [TextStrip],
    pub provenance: &'a Provenance,
}

impl Page<'_> {
    /// Returns the page: HTML that needs nothing beside it.
    #[must_use]
    pub fn html(&self) -> String {
        let report = Part::root(self.report);
        let model = model(&report);
        let id = if model.text().is_empty() { self.provenance.model.as_deref() } else { Some(model.text()) };
        let title =
            format!("{} of {}", capitalised(&self.kind.replace(['-', '_'], " ")), id.unwrap_or("an unnamed model"));
        let is_audit = self.kind == "audit";
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    main {
                        h1 { (title) }
                        @if is_audit || !report.get("verdict").is_absent() { (evidence::answer(&report, &model)) }
                        @match self.kind {
                            "audit" => (audit::sections(&report, self.scores, self.texts)),
                            "memorization" => (memorization::sections(&report)),
                            _ => (others(&report)),
                        }
                        (self.origin(&report))
                    }
                }
            }
        };
        page.into_string()
    }

    /// Returns the figures of the page as SVG files, each with its name, such as `1-roc-linear-scale.svg`. They are cut out of the page, so
    /// that they are the same.
    #[must_use]
    pub fn figures(&self) -> Vec<(String, String)> {
        let html = self.html();
        let drawings = html.split("<svg ").skip(1).filter_map(|rest| rest.split_once("</svg>"));
        let file = |(number, (drawing, _)): (usize, (&str, &str))| {
            // XML has no other control characters, and no reference to them.
            let drawing = drawing.replace(|character: char| character.is_control() && character != '\n', "\u{fffd}");
            let (attributes, content) = drawing.split_once('>')?;
            let title = content.strip_prefix("<title>")?.split_once("</title>")?.0;
            let svg = format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" {attributes}><style>text {{ font-family: sans-serif; }}\n{STYLE}</style>{content}</svg>\n"
            );
            Some((format!("{}-{}.svg", number + 1, slug(title)), svg))
        };
        drawings.enumerate().filter_map(file).collect()
    }

    fn origin(&self, report: &Part) -> Markup {
        let Provenance { job, ended, command, .. } = self.provenance;
        let named = [("job", job), ("ended", ended), ("command", command)];
        html! {
            h2 { "Provenance" }
            @if named.iter().any(|(_, value)| value.is_some()) {
                dl { @for (name, value) in named { @if let Some(value) = value { dt { (name) } dd { code { (value) } } } } }
            }
            @for name in ["provenance", "plan", "usage"] {
                @let part = report.get(name);
                @if !part.is_absent() { (generic::content(&part, 3)) }
            }
            @if report.get("provenance").is_absent() && !report.get("model").is_absent() {
                (generic::content(&report.get("model"), 3))
            }
            p class="note" {
                "Every number of this page is in the JSON of the report; the attribute " code { "data-at" } " of its element is the JSON \
                 pointer to it."
            }
        }
    }
}

/// The sections of a report that no other function draws.
fn others(report: &Part) -> Markup {
    let has_verdict = !report.get("verdict").is_absent();
    let names = report.value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let shown_elsewhere = ["verdict", "provenance", "model", "warnings", "methods", "kind", "plan", "usage"];
    // The comparison of the lists is above, where there is a verdict.
    let compared = ["blind", "comparability"];
    let is_shown = |name: &&str| shown_elsewhere.contains(name) || has_verdict && compared.contains(name);
    html! {
        @if has_verdict { (evidence::what_would_change_it(report)) (evidence::comparability(report)) }
        @for name in names.filter(|name| !is_shown(name)) {
            (generic::section(&capitalised(&name.replace('_', " ")), &report.get(name)))
        }
        (generic::section("Methods", &report.get("methods")))
        @if has_verdict || !report.get("warnings").is_absent() { (evidence::limits(report)) }
    }
}

/// The id of the model asked about, wherever the report has it.
fn model<'a>(report: &Part<'a>) -> Part<'a> {
    let places: [&[&str]; 5] =
        [&["provenance", "model"], &["verdict", "model", "id"], &["model", "id"], &["model"], &["a", "model", "id"]];
    let model = places.into_iter().map(|path| report.path(path)).find(|part| part.value.is_string());
    model.unwrap_or_else(|| report.get("model"))
}

/// A title in lower case, with a hyphen for each run of other characters than letters and digits; at most 40 characters.
fn slug(title: &str) -> String {
    let title =
        ["&lt;", "&gt;", "&amp;", "&quot;"].iter().fold(title.to_owned(), |title, escaped| title.replace(escaped, " "));
    let words = title.split(|character: char| !character.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.collect::<Vec<_>>().join("-").to_lowercase();
    slug.chars().take(40).collect::<String>().trim_end_matches('-').to_owned()
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MethodScores;
    use serde_json::json;

    /// A report with hostile texts wherever a client may put one.
    fn report(text: &str) -> Value {
        let rates = json!([{ "fpr": 0.01, "tpr": 0.25, "interval": [0.1, 0.4] }]);
        json!({
            "samples": { "total": 4, "members": 2, "non_members": 2, "clusters": 4, "largest_cluster": 1,
                         "exclusions": [{ "label": text, "code": text, "samples": 1 }] },
            "methods": [{ "label": text, "scored": 4, "auroc": 0.740_532, "auroc_standard_error": 0.015, "tpr_at_fpr": rates,
                          "p_value": 0.000_1, "control": { "auroc": 0.488, "difference": 0.252, "interval": [0.2, 0.3],
                          "negative_controls": [{ "groups": [text, text], "difference": 0.0 }] } }],
            "groups": [{ "group": text, "total": 4, "members": 2, "non_members": 2, "methods": [] }],
            "works": [{ "document": text, "passages": 3, "score": 0.5, "known_above": 0, "p_value": 0.05, "p_value_adjusted": 0.05,
                        "listed": true }],
            "verdict": { "state": "association", "design": "observational", "primary": text, "lists": [text, text], "level": 0.01,
                         "hypothesis": text, "clusters": [2, 2], "sentence": text, "assumptions": [text], "model": { "id": text },
                         "effect": { "auroc": 0.740_532, "interval": [0.7, 0.78], "lower_bound": 0.704 },
                         "comparability": { "state": "comparable", "auroc": 0.5, "upper_bound": 0.53, "margin": 0.15,
                         "measures": [{ "measure": "words", "auroc": 0.5, "separating": [{ "ngram": text }] }] } },
            "warnings": [{ "code": "mixed_lengths", "detail": text }],
            "position_profile": [{ "position": 1, "members": { "count": 2, "mean_lp": -1.5 } }],
            "provenance": { "model": text, "request": { "primary": text } },
        })
    }

    fn page(report: &Value) -> String {
        let mut scores = MethodScores::new("m");
        for (member, score) in [(true, 1.0), (true, 0.2), (false, 0.1), (false, 0.4)] {
            scores.add(Some(member), score);
        }
        let provenance = Provenance { command: Some("pdr-audit audit '<b>'".to_owned()), ..Provenance::default() };
        Page {
            kind: "audit",
            report,
            scores: &DrawnScores { methods: vec![scores], ..DrawnScores::default() },
            texts: &[],
            provenance: &provenance,
        }
        .html()
    }

    #[test]
    fn texts_of_clients_are_texts() {
        for text in [
            "<script>alert(1)</script>",
            "</svg></style><img src=x onerror=y>",
            "\"'><b>`<b>`",
            "\u{202e}\0\u{7}",
            "😀",
        ] {
            let html = page(&report(text));
            for forbidden in ["<script", "<img", "<b>", "onerror=y>"] {
                assert!(!html.contains(forbidden), "{text}: {forbidden}");
            }
            assert_eq!(html.matches("</style>").count(), 1, "{text}");
            assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count(), "{text}");
        }
        let long = "x".repeat(1 << 20);
        assert!(page(&report(&long)).contains(&long));
    }

    #[test]
    fn every_number_is_that_of_the_report_at_its_place() {
        let report = report("text");
        let html = page(&report);
        let mut seen = 0;
        for element in html.split("<data value=\"").skip(1) {
            let (value, rest) = element.split_once("\" data-at=\"").unwrap();
            let (pointer, rest) = rest.split_once("\">").unwrap();
            let shown = rest.split_once("</data>").unwrap().0;
            let exact = report.pointer(pointer).unwrap_or_else(|| panic!("{pointer} is in no report"));
            assert_eq!(exact.to_string(), value, "{pointer}");
            let (shown, exact): (f64, f64) = (shown.trim_end_matches(" %").parse().unwrap(), exact.as_f64().unwrap());
            assert!((shown - exact).abs() <= 5e-4, "{pointer}: {shown}, not {exact}");
            seen += 1;
        }
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn a_page_loads_nothing_and_runs_nothing() {
        let html = page(&report("text"));
        for forbidden in ["<script", "<link", "src=", "url(", "@import", "href=", "http://", "https://"] {
            assert!(!html.contains(forbidden), "{forbidden}");
        }
        assert!(html.starts_with("<!DOCTYPE html>"));
        assert!(html.contains("Content-Security-Policy"));
    }

    #[test]
    fn figures_are_files_of_their_own() {
        let report = report("a \u{1} < & b");
        let mut scores = MethodScores::new("m\u{1}<");
        [(true, 1.0), (false, 0.1)].into_iter().for_each(|(member, score)| scores.add(Some(member), score));
        let page = Page {
            kind: "audit",
            report: &report,
            scores: &DrawnScores { methods: vec![scores], ..DrawnScores::default() },
            texts: &[],
            provenance: &Provenance::default(),
        };
        let figures = page.figures();
        let names: Vec<&str> = figures.iter().map(|(name, _)| name.as_str()).collect();
        let expected = [
            "1-auroc-beside-what-else-could-explain-it.svg",
            "2-roc-linear-scale.svg",
            "3-roc-logarithmic-scale.svg",
            "4-scores-of-m.svg",
        ];
        assert_eq!(names, expected);
        for (name, svg) in &figures {
            assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="), "{name}: {svg}");
            assert_eq!((svg.matches("<svg").count(), svg.matches("</svg>").count()), (1, 1), "{name}");
            assert!(!svg.contains('\u{1}'), "{name}: {svg}");
        }
    }

    #[test]
    fn reports_of_other_kinds_and_without_a_verdict_are_pages_too() {
        let none = Provenance::default();
        let unlabelled = json!({ "samples": { "total": 1 }, "methods": [{ "label": "loss", "scored": 1 }], "provenance": { "model": "m" } });
        let html =
            Page { kind: "audit", report: &unlabelled, scores: &DrawnScores::default(), texts: &[], provenance: &none }
                .html();
        assert!(html.contains("There is no verdict") && html.contains("<h1>Audit of m</h1>"), "{html}");
        let memorization = json!({ "model": { "id": "m", "digest": "sha256:00" }, "summary": { "reading": "It completes 2 of 104." } });
        let html = Page {
            kind: "memorization",
            report: &memorization,
            scores: &DrawnScores::default(),
            texts: &[],
            provenance: &none,
        }
        .html();
        assert!(html.contains("<h1>Memorization of m</h1>") && html.contains("It completes 2 of 104."), "{html}");
        assert!(
            Page {
                kind: "audit",
                report: &json!(null),
                scores: &DrawnScores::default(),
                texts: &[],
                provenance: &none
            }
            .html()
            .ends_with("</html>")
        );
    }
}
