//! The sections of the report of an audit.

use crate::chart::{Strip, strip};
use crate::distributions::histogram;
use crate::drawn_scores::{DrawnScores, WorkScores};
use crate::evidence;
use crate::figures::{counted, left_out, table};
use crate::generic;
use crate::methods;
use crate::numbers::{Format, Part};
use crate::profile;
use crate::roc;
use crate::strips::{TextStrip, strips};
use crate::sweeps::sweeps;
use maud::{Markup, html};

/// Maximum number of works or groups that are listed.
const MOST_LISTED: usize = 200;
/// Maximum number of methods over all groups that are listed.
const MOST_GROUP_METHODS: usize = 400;

/// Cells of the strip of a work, and their heights.
const CELLS: usize = 256;
const LEVELS: usize = 8;

/// Parts that have no section of their own, with the titles of those that they get.
const OTHERS: [(&str, &str); 6] = [
    ("decisions", "List of texts at a false discovery rate"),
    ("dataset_test", "The texts tested beside the known non-members"),
    ("shared_text", "Text shared with known works"),
    ("splits", "Tunings"),
    ("seeds", "Spread over seeds"),
    ("selected_tokens", "Tokens selected most often"),
];

/// The sections between the answer and the provenance. `texts` are shown token by token.
pub fn sections(report: &Part, drawn: &DrawnScores, texts: &[TextStrip]) -> Markup {
    let scores = &drawn.methods;
    html! {
        (evidence::what_would_change_it(report))
        (samples(&report.get("samples")))
        (works(report, &drawn.works))
        (methods::tables(report))
        @if scores.iter().any(|scores| scores.count() > 0) {
            h2 { "Scores" }
            (roc::curves(scores))
            @for scores in scores.iter().take(1) { (histogram(scores)) }
        }
        (sweeps(report))
        (evidence::comparability(report))
        (groups(report))
        @for (name, title) in OTHERS { (generic::section(title, &report.get(name))) }
        (profile::profile(report))
        (strips(texts))
        (evidence::limits(report))
        (annex(report))
    }
}

fn samples(samples: &Part) -> Markup {
    let exclusions = samples.get("exclusions");
    html! {
        h2 { "Samples" }
        p {
            (counted(&samples.get("total"), "text")) ": " (counted(&samples.get("members"), "member")) ", "
            (counted(&samples.get("non_members"), "non-member")) ", in " (counted(&samples.get("clusters"), "cluster"))
            " of equal or nearly equal texts or of one document, the largest of "
            (counted(&samples.get("largest_cluster"), "text")) "."
        }
        @if exclusions.elements().is_empty() { p { "No score is missing." } } @else {
            p { "Missing scores:" }
            (generic::content(&exclusions, 3))
        }
    }
}

fn works(report: &Part, scores: &[WorkScores]) -> Markup {
    let works = report.get("works").elements();
    let shown = &works[..works.len().min(MOST_LISTED)];
    let row = |work: &Part| {
        let document = work.get("document");
        vec![
            html! { @match document.value.as_str() { Some(name) => (name), None => (document.value.to_string()) } },
            work.get("passages").show(Format::Count),
            work.get("score").show(Format::Decimals),
            work.get("known_above").show(Format::Count),
            work.get("p_value").show(Format::PValue),
            work.get("p_value_adjusted").show(Format::PValue),
            html! { @if work.get("listed").value == true { "yes" } @else { "no" } },
        ]
    };
    html! {
        @if !shown.is_empty() {
            h2 { "Works" }
            p {
                "Each work is ranked among the known works of the calibration, which are taken as not seen by the model. The p-value is the share of \
                 these and itself that score at least as high; the adjusted one is for the number of works tested. It means something only where the \
                 known works are like those tested, which the comparability below speaks of."
            }
            (table(
                &["work", "passages", "score", "known works above", "p", "adjusted p", "on the list"],
                &shown.iter().map(row).collect::<Vec<_>>(),
            ))
            (left_out(works.len(), shown.len(), "works"))
            (passages(scores))
        }
    }
}

/// A strip for each work: the score of each passage from the beginning of the work to its end.
fn passages(works: &[WorkScores]) -> Markup {
    let all = || works.iter().flat_map(|work| work.scores.iter().copied());
    let (low, high) =
        all().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), score| (low.min(score), high.max(score)));
    let height = |score: f64| ((score - low) / (high - low) * (LEVELS - 1) as f64).round() as usize + 1;
    let cells = |WorkScores { scores, .. }: &WorkScores| {
        let cells = CELLS.min(scores.len());
        // A cell shows the highest of its passages.
        let start = |cell: usize| cell * scores.len() / cells;
        let highest = |cell: usize| scores[start(cell)..start(cell + 1)].iter().copied().map(height).max().unwrap_or(0);
        Strip { heights: (0..cells).map(highest).collect(), highest: LEVELS }
    };
    let is_drawn = |work: &&WorkScores| !work.scores.is_empty();
    html! {
        @if low < high {
            h3 { "Passages of the works" }
            p {
                "Each strip is a work from its first passage to its last; the higher a cell, the higher the score of the passage, from the \
                 lowest to the highest of the works shown. A passage alone decides nothing."
            }
            @for work in works.iter().filter(is_drawn) {
                p.note { (work.document) ", " (work.scores.len()) " passages" }
                (strip(&format!("Scores along {}", work.document), &cells(work)))
            }
        }
    }
}

fn groups(report: &Part) -> Markup {
    let groups = report.get("groups").elements();
    let methods = groups.first().map_or(1, |group| group.get("methods").elements().len().max(1));
    let shown = &groups[..groups.len().min(MOST_LISTED).min((MOST_GROUP_METHODS / methods).max(1))];
    html! {
        @if !shown.is_empty() {
            h2 { "Groups" }
            @for group in shown {
                h3 { (group.get("group").text()) }
                p {
                    (counted(&group.get("total"), "text")) ": " (counted(&group.get("members"), "member")) ", "
                    (counted(&group.get("non_members"), "non-member")) "."
                }
                (methods::separations(&group.get("methods").elements()))
                @let warnings = group.get("warnings").elements();
                @if !warnings.is_empty() { (evidence::warning_list(&warnings)) }
            }
            (left_out(groups.len(), shown.len(), "groups"))
        }
    }
}

/// Lists what was not run: the attacks that the European Data Protection Board names in paragraph 55 of its Opinion 28/2024, and what this
/// audit could have had and did without.
fn annex(report: &Part) -> Markup {
    let verdict = report.get("verdict");
    let has = |path: &[&str]| !report.path(path).is_absent();
    let is_planned = report.path(&["plan", "planned"]).value == true;
    let attacks = [
        (
            "membership inference",
            if verdict.is_absent() { "scores alone, compared with nothing" } else { "run: this report" },
        ),
        ("attribute inference", "not run"),
        ("exfiltration", "not run"),
        ("regurgitation of training data", "not run here; a memorization report tests it"),
        ("model inversion", "not run"),
        ("reconstruction", "not run"),
    ];
    let parts = [
        ("a plan that fixes methods, primary and control before anything is scored", is_planned),
        ("a control model, taken as not trained on the texts", has(&["provenance", "control"])),
        ("labels", report.path(&["samples", "members"]).number() > Some(0.0)),
        ("known non-members as a calibration", has(&["provenance", "request", "calibration"])),
        ("a draw of the owner's own, taken as random", verdict.get("design").text() == "randomised"),
        ("replicates of a bootstrap", has_bootstrap(report)),
    ];
    let row = |name: &str, state: &str| vec![html! { (name) }, html! { (state) }];
    html! {
        h2 { "Annex: what was run and what was not" }
        p {
            "Opinion 28/2024 of the European Data Protection Board, paragraph 55, names attacks that tests of a model should cover. An audit \
             of membership is one of them:"
        }
        (table(&["attack", "state"], &attacks.map(|(name, state)| row(name, state))))
        (table(&["part of an audit", "in this one"], &parts.map(|(name, has)| row(name, if has { "yes" } else { "no" }))))
    }
}

fn has_bootstrap(report: &Part) -> bool {
    report.get("methods").elements().iter().any(|method| !method.get("bootstrap").is_absent())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_strip_has_a_cell_for_each_passage_up_to_256() {
        let work = |scores: Vec<f64>| WorkScores { document: "a < b".to_owned(), scores };
        let html = passages(&[
            work(vec![1.0, 2.0, 1.5]),
            work((0..1_000).map(|n| f64::from(n % 7)).collect()),
            work(Vec::new()),
        ]);
        let html = html.into_string();
        assert!(html.contains("a &lt; b, 3 passages") && html.contains("1000 passages"), "{html}");
        assert_eq!(html.matches("<svg").count(), 2, "{html}");
        assert_eq!(passages(&[work(vec![1.0, 1.0])]).into_string(), "");
    }
}
