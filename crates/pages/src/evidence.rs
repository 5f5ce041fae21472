//! The question, the answer and what would change it: sections made of the verdict.

use crate::chart::{Axis, IntervalRow, intervals};
use crate::figures::{code, counted, figure, list, sentence, table};
use crate::generic;
use crate::numbers::{Format, Part};
use maud::{Markup, html};

/// The question that the report answers, and the answer with its design.
pub fn answer(report: &Part, model: &Part) -> Markup {
    let verdict = report.get("verdict");
    let lists = verdict.get("lists");
    html! {
        @if verdict.is_absent() {
            p class="answer" {
                "There is no verdict: the texts are compared with nothing. It takes labels, or a calibration of texts like them that the \
                 model cannot have seen."
            }
        } @else {
            @if !lists.is_absent() { p class="question" {
                "Do the texts of “" (lists.element(0).text()) "” score higher under the model " (code(model)) " than those of “"
                (lists.element(1).text()) "”, by more than chance and the differences between the texts explain?"
            } }
            p class="answer" { (sentence(verdict.get("sentence").text())) }
            p {
                strong { "Design: " (verdict.get("design").text()) ". " }
                (design(verdict.get("design").text(), report.get("kind").text()))
            }
        }
    }
}

/// Says what a design can show. `kind` is that of a test.
fn design(name: &str, kind: &str) -> &'static str {
    match (name, kind) {
        ("randomised", _) => {
            "It is taken for granted that chance decided which texts were published, by the owner's own draw. Then, if the model was not \
             trained on them, they score higher than the others by chance alone, and the probability of that is known."
        }
        ("extraction", _) => {
            "The model was given the beginning of passages, and what it completes is compared with what follows in the text."
        }
        (_, "order") => {
            "The texts were published in some order. If the model was not trained on them in this order, and if chance made the order, \
             every order is as probable. Nobody but its publisher knows that chance made it: such a design never is evidence of training \
             by itself."
        }
        _ => {
            "Somebody collected the lists. A difference of scores can come from training, or from any other difference between the \
             lists; a comparison of the lists shows what was looked for, and cannot exclude what was not. Such a design never is evidence \
             of training by itself."
        }
    }
}

/// Draws the size of the effect beside what else could explain it.
pub fn what_would_change_it(report: &Part) -> Markup {
    let verdict = report.get("verdict");
    let (effect, lists) = (verdict.get("effect"), verdict.get("comparability"));
    if effect.is_absent() {
        return Markup::default();
    }
    if effect.get("auroc").is_absent() {
        return html! { h2 { "The test" } (hypothesis(&verdict)) (generic::content(&effect, 3)) };
    }
    let control = verdict.get("control");
    let interval = |part: &Part| Some([part.element(0).number()?, part.element(1).number()?]);
    let mut rows = vec![(
        "found, 99 % interval",
        effect.get("auroc"),
        interval(&effect.get("interval")),
        effect.get("interval").show_interval(Format::Decimals),
    )];
    if !control.is_absent() {
        rows.push(("under the control", control.get("auroc"), None, html! { "–" }));
    }
    if !lists.is_absent() {
        let upper = lists.get("upper_bound");
        let up_to = lists.get("auroc").number().zip(upper.number()).map(|(point, upper)| [point, upper]);
        rows.push((
            "from the texts alone, upper 95 %",
            lists.get("auroc"),
            up_to,
            html! { "up to " (upper.show(Format::Decimals)) },
        ));
    }
    let least = verdict.get("could_have_found");
    if !least.is_absent() {
        rows.push(("smallest that could be found", least, None, html! { "–" }));
    }
    let drawn: Vec<IntervalRow> = rows
        .iter()
        .map(|(name, value, interval, _)| IntervalRow {
            name: (*name).to_owned(),
            value: value.number(),
            interval: *interval,
        })
        .collect();
    let drawing = intervals(
        "AUROC beside what else could explain it",
        "Areas under the ROC curve; the table has the numbers",
        &Axis::shares("AUROC; chance is 0.5"),
        0.5,
        &drawn,
    );
    let cells: Vec<Vec<Markup>> = rows
        .iter()
        .map(|(name, value, _, interval)| vec![html! { (name) }, value.show(Format::Decimals), interval.clone()])
        .collect();
    let names: Vec<&str> = rows.iter().map(|(name, ..)| *name).collect();
    let caption = format!(
        "AUROC: {}. “From the texts alone” is a classifier that does not know the model; “could be found” is with a power of 80 %.",
        names.join("; ")
    );
    html! {
        h2 { "What would change the answer" }
        (hypothesis(&verdict))
        @if !lists.is_absent() {
            p {
                "With 99 % confidence the AUROC is at least " (effect.get("lower_bound").show(Format::Decimals)) ". A classifier that knows "
                "the texts alone reaches " (lists.get("auroc").show(Format::Decimals)) ", with 95 % confidence at most "
                (lists.get("upper_bound").show(Format::Decimals)) "."
                @if verdict.get("state").text() == "association" {
                    " A difference between the lists that none of its measures sees, and that raises the AUROC to the first of these numbers \
                     by itself, would explain the result without any training on the texts."
                }
            }
        }
        (figure(&drawing, &caption, &[], &table(&["number", "AUROC", "interval or bound"], &cells)))
    }
}

/// The hypothesis that was tested, its level and p-value, and what was compared.
fn hypothesis(verdict: &Part) -> Markup {
    let clusters = verdict.get("clusters");
    html! {
        p {
            "The null hypothesis: " (verdict.get("hypothesis").text()) ". The level is " (verdict.get("level").show(Format::Decimals))
            ", one-sided"
            @if !verdict.get("p_value").is_absent() { "; p = " (verdict.get("p_value").show(Format::PValue)) }
            "."
            @if !clusters.is_absent() {
                " " (counted(&clusters.element(0), "cluster")) " and " (clusters.element(1).show(Format::Count)) " are compared."
            }
        }
    }
}

/// Lists what tells the lists apart without the model.
pub fn comparability(report: &Part) -> Markup {
    let lists = report.path(&["verdict", "comparability"]);
    let blind = report.get("blind");
    if lists.is_absent() && blind.is_absent() {
        return Markup::default();
    }
    let row = |measure: &Part| {
        let separating = measure.get("separating").elements();
        let ngrams: Vec<&str> = separating.iter().map(|ngram| ngram.get("ngram").text()).collect();
        vec![
            html! { (measure.get("measure").text().replace('_', " ")) },
            measure.get("auroc").show(Format::Decimals),
            html! { (ngrams.join(" · ")) },
        ]
    };
    let measures: Vec<Vec<Markup>> = lists.get("measures").elements().iter().map(row).collect();
    let words = blind.get("words");
    html! {
        h2 { "Comparability of the lists" }
        @if !lists.is_absent() {
            p {
                "The lists are " strong { (lists.get("state").text().replace('_', " ")) } ": the upper 95 % bound of the classifier's AUROC is "
                (lists.get("upper_bound").show(Format::Decimals)) ", and lists are comparable up to half and a margin of "
                (lists.get("margin").show(Format::Decimals)) "."
            }
            (table(&["measure", "AUROC", "what separates"], &measures))
        }
        @if !words.is_absent() {
            p {
                "By their words alone, the two lists are told apart with an AUROC of " (words.get("auroc").show(Format::Decimals))
                " (p = " (words.get("p_value").show(Format::PValue)) ")."
            }
        }
        @let lengths = blind.get("lengths");
        @if !lengths.is_absent() {
            p {
                "AUROC of the number of scored tokens: " (lengths.get("scored_tokens").show(Format::Decimals))
                "; of the bytes over those that zlib makes of them: " (lengths.get("bytes_per_zlib_byte").show(Format::Decimals)) "."
            }
        }
    }
}

/// Assumptions of the test, and warnings of the report.
pub fn limits(report: &Part) -> Markup {
    let assumptions = report.path(&["verdict", "assumptions"]);
    let warnings = report.get("warnings").elements();
    let of_groups = report.get("groups").elements().iter().any(|group| !group.get("warnings").elements().is_empty());
    html! {
        h2 { "Assumptions and limits" }
        @if !assumptions.is_absent() {
            p { "The verdict takes for granted:" }
            (list(&assumptions))
        }
        @if warnings.is_empty() {
            p { @if of_groups { "Beside those of groups, the report has no warning." } @else { "The report has no warning." } }
        } @else {
            p { "Warnings:" }
            (warning_list(&warnings))
        }
        p {
            "No number here is the probability that a text was in the training data. A result that is not above chance does not show that \
             the texts were not in it."
        }
    }
}

/// The warnings of a report, or of a group.
pub fn warning_list(warnings: &[Part]) -> Markup {
    html! {
        ul { @for warning in warnings { li { code { (warning.get("code").text()) } " " (sentence(warning.get("detail").text())) } } }
    }
}
