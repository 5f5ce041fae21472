//! Parts of a page that sections share: figures, their tables, and lists of names and values.

use crate::numbers::{Format, Part};
use maud::{Markup, html};

/// Maximum number of rows of a table that is printed on one page.
const MOST_TOGETHER: usize = 16;

/// A drawing with what it shows, the series by name, and the same numbers as a table that is folded up.
pub fn figure(drawing: &Markup, caption: &str, series: &[String], table: &Markup) -> Markup {
    html! {
        figure {
            (drawing)
            @if series.len() > 1 {
                ul class="legend" {
                    @for (index, name) in series.iter().enumerate() {
                        li { span class=(format!("swatch s{index}")) {} (name) }
                    }
                }
            }
            details { summary { "The figure as a table" } (table) }
            figcaption { (caption) }
        }
    }
}

/// A table with a row of headers, the first column of each row being its header too.
pub fn table(headers: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        div class="wide" role="group" aria-label=(headers.join(", ")) tabindex="0" { table class=[(rows.len() <= MOST_TOGETHER).then_some("short")] {
            thead { tr { @for header in headers { th scope="col" { (header) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (index, cell) in row.iter().enumerate() {
                            @if index == 0 { th scope="row" { (cell) } } @else { td { (cell) } }
                        }
                    }
                }
            }
        } }
    }
}

/// A sentence on the number of things that are not shown; nothing where all are.
pub fn left_out(all: usize, shown: usize, what: &str) -> Markup {
    html! { @if all > shown { p class="note" { (all - shown) " more " (what) " are in the JSON of the report." } } }
}

/// The texts of a list.
pub fn list(part: &Part) -> Markup {
    html! { ul { @for element in part.elements() { li { (sentence(element.text())) } } } }
}

/// A text of the report whose names stand between backticks.
pub fn sentence(text: &str) -> Markup {
    html! { @for (index, piece) in text.split('`').enumerate() { @if index % 2 == 1 { code { (piece) } } @else { (piece) } } }
}

/// A text of the report as code: an id or a digest.
pub fn code(part: &Part) -> Markup {
    html! { @if part.is_absent() { "–" } @else { code { (part.text()) } } }
}

/// A header cell with the label of a method.
pub fn label(part: &Part) -> Markup {
    html! { code { (part.text()) } }
}

/// A count with its noun, in the plural unless it is 1.
pub fn counted(part: &Part, one: &str) -> Markup {
    html! { (part.show(Format::Count)) " " (one) @if part.number() != Some(1.0) { "s" } }
}
