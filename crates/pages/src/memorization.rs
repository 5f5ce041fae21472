//! The sections of the report of a memorization job: what the model completes of each text, and a map along it.

use crate::chart::{Strip, strip};
use crate::figures::{left_out, sentence, table};
use crate::generic;
use crate::numbers::{Format, Part};
use maud::{Markup, html};

/// Maximum number of texts that are listed.
const MOST_LISTED: usize = 200;
/// Maximum number of texts whose map is drawn.
const MOST_DRAWN: usize = 20;
/// Number of cells of a map.
const CELLS: usize = 256;
/// A window of at least this probability is drawn, in its lowest cells.
const LEAST_DRAWN: f64 = 1e-6;

pub fn sections(report: &Part) -> Markup {
    let summary = report.get("summary");
    html! {
        p class="answer" { (sentence(summary.get("reading").text())) }
        (beside_the_control(&summary))
        (texts(report))
        (generic::section("Known works", &summary.get("known_works")))
        (generic::section("Windows", &report.get("windows")))
        (generic::section("Settings of continuations", &report.get("continuation")))
        (generic::section("Cost", &report.get("cost")))
    }
}

/// The texts and the control side by side.
fn beside_the_control(summary: &Part) -> Markup {
    let (texts, control) = (summary.get("texts"), summary.get("control"));
    let lines = [
        ("texts", "texts", Format::Count),
        ("characters", "characters", Format::Count),
        ("windows", "windows", Format::Count),
        ("greedy_windows", "windows completed by greedy decoding", Format::Count),
        ("greedy_share", "share of these", Format::Percent),
        ("coverage", "share of the characters in windows of the least probability", Format::Percent),
        ("longest_run", "longest run, tokens", Format::Count),
        ("largest_log_p", "largest log-probability of a window", Format::Decimals),
    ];
    let row = |(name, words, format): (&str, &str, Format)| {
        let mut cells = vec![html! { (words) }, texts.get(name).show(format)];
        if !control.is_absent() {
            cells.push(control.get(name).show(format));
        }
        cells
    };
    let headers: &[&str] = if control.is_absent() { &["number", "texts"] } else { &["number", "texts", "control"] };
    html! {
        h2 { @if control.is_absent() { "What is completed" } @else { "The texts beside the control" } }
        (table(headers, &lines.map(row)))
    }
}

fn texts(report: &Part) -> Markup {
    let texts = report.get("texts").elements();
    let shown = &texts[..texts.len().min(MOST_LISTED)];
    let row = |text: &Part| {
        vec![
            name(text),
            text.get("characters").show(Format::Count),
            html! { (text.get("windows").elements().len()) },
            text.get("greedy_windows").show(Format::Count),
            text.get("coverage").show(Format::Percent),
            text.path(&["longest_run", "tokens"]).show(Format::Count),
            text.get("largest_log_p").show(Format::Decimals),
            text.get("p_value").show(Format::PValue),
            html! { (text.path(&["error", "detail"]).text()) },
        ]
    };
    let headers = ["text", "characters", "windows", "greedy", "coverage", "longest run", "largest log p", "p", "error"];
    let least = report.get("least_probability").number().unwrap_or(1e-3);
    let with_windows: Vec<&Part> = texts.iter().filter(|text| !text.get("windows").elements().is_empty()).collect();
    let drawn = &with_windows[..with_windows.len().min(MOST_DRAWN)];
    html! {
        h2 { "Texts" }
        (table(&headers, &shown.iter().map(row).collect::<Vec<_>>()))
        (left_out(texts.len(), shown.len(), "texts"))
        (continuations(&texts))
        @if !drawn.is_empty() {
            h2 { "Maps" }
            p {
                "Each strip is a text from its first character to its last. A cell is as high as the most probable suffix of a window in it: full \
                 where the model completes the suffix by greedy decoding, two thirds where it does so with a probability of at least "
                (report.get("least_probability").show(Format::Significant)) ", one third where of at least one in a million."
            }
            @for text in drawn {
                figure {
                    (strip(&format!("Map of {}", plain_name(text)), &cells(text, least)))
                    figcaption { (name(text)) }
                }
            }
            (left_out(with_windows.len(), drawn.len(), "maps"))
        }
    }
}

/// Lists what came of the texts that the model continued.
fn continuations(texts: &[Part]) -> Markup {
    let continued: Vec<&Part> = texts.iter().filter(|text| !text.get("continuation").is_absent()).collect();
    let shown = &continued[..continued.len().min(MOST_LISTED)];
    let row = |text: &&Part| {
        let continuation = text.get("continuation");
        let count = |name: &str| continuation.get(name).show(Format::Count);
        vec![
            name(text),
            count("tokens"),
            count("verbatim_tokens"),
            count("following_words"),
            count("matching_words"),
            continuation.get("recall").show(Format::Percent),
            html! { (continuation.path(&["error", "detail"]).text()) },
        ]
    };
    let headers = [
        "text",
        "tokens written",
        "verbatim from the first on",
        "words behind the seed",
        "near-verbatim",
        "share",
        "error",
    ];
    html! {
        @if !shown.is_empty() {
            h2 { "Continuations" }
            p { "The model continued each text greedily from a seed passage; near-verbatim words are in blocks of the text that it gives back." }
            (table(&headers, &shown.iter().map(row).collect::<Vec<_>>()))
            (left_out(continued.len(), shown.len(), "continuations"))
        }
    }
}

/// The height of each cell of a text's map, in thirds.
fn cells(text: &Part, least: f64) -> Strip {
    let mut heights = vec![0; CELLS];
    let characters = text.get("characters").number().unwrap_or(0.0).max(1.0);
    let cell = |window: &Part, name: &str| window.get(name).number().unwrap_or(0.0) / characters * CELLS as f64;
    for window in text.get("windows").elements() {
        let probability = window.get("log_p").number().unwrap_or(f64::NEG_INFINITY).exp();
        let height = match probability {
            _ if window.get("greedy").value == true => 3,
            probability if probability >= least => 2,
            probability if probability >= LEAST_DRAWN => 1,
            _ => 0,
        };
        let (from, to) = (cell(&window, "suffix_start") as usize, cell(&window, "end").ceil() as usize);
        for cell in heights.iter_mut().take(to).skip(from) {
            *cell = height.max(*cell);
        }
    }
    Strip { heights, highest: 3 }
}

fn plain_name(text: &Part) -> String {
    let id = text.get("id");
    match (id.value.as_str(), id.number()) {
        (Some(id), _) => id.to_owned(),
        (None, Some(id)) => format!("{id}"),
        _ => format!("text {}", text.get("index").value),
    }
}

fn name(text: &Part) -> Markup {
    html! { (plain_name(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn continuations_and_reasons_for_no_windows_are_shown() {
        let report = json!({ "texts": [
            { "id": "a", "error": { "code": "too_short", "detail": "it is too short" } },
            { "id": "b", "continuation": { "tokens": 16, "verbatim_tokens": 3, "recall": 0.25 } },
        ] });
        let html = sections(&Part::root(&report)).into_string();
        assert!(html.contains("it is too short") && html.contains("25 %"), "{html}");
        assert_eq!(html.matches("/continuation/verbatim_tokens").count(), 1, "{html}");
    }

    #[test]
    fn a_cell_is_as_high_as_its_most_probable_window() {
        let window = |from: u64, to: u64, log_p: f64, greedy: bool| json!({ "suffix_start": from, "end": to, "log_p": log_p, "greedy": greedy });
        let text = json!({ "characters": 256, "windows": [
            window(0, 10, -20.0, false), window(5, 10, -10.0, false), window(8, 12, -5.0, false), window(250, 256, -0.1, true),
        ] });
        let heights = cells(&Part::root(&text), 1e-3).heights;
        assert_eq!(heights[..13], [0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 0]);
        assert_eq!(heights[249..], [0, 3, 3, 3, 3, 3, 3]);
    }
}
