//! Parts of a report that have no section of their own: names and values, and tables of lists.

use crate::figures::{left_out, table};
use crate::numbers::{Format, Part};
use maud::{Markup, html};
use serde_json::Value;

/// Maximum number of rows of a table.
const MOST_ROWS: usize = 100;
/// Maximum number of texts or numbers of a list.
const MOST_VALUES: usize = 50;
/// Maximum depth of headings; what is deeper is JSON.
const DEEPEST: usize = 4;

/// A section on a part of a report; nothing where it is absent or empty.
pub fn section(title: &str, part: &Part) -> Markup {
    html! { @if !is_empty(part.value) { h2 { (title) } (content(part, 3)) } }
}

/// A part without a heading, whose own parts have headings of this depth.
pub fn content(part: &Part, depth: usize) -> Markup {
    match part.value {
        Value::Object(members) => {
            let (inner, plain): (Vec<&String>, Vec<&String>) =
                members.keys().partition(|name| is_nested(&members[name.as_str()]) && depth <= DEEPEST);
            html! {
                @if !plain.is_empty() {
                    dl { @for name in plain { dt { (words(name)) } dd { (value(&part.get(name))) } } }
                }
                @for name in inner {
                    @let inner = part.get(name);
                    @if !is_empty(inner.value) {
                        @if depth == 3 { h3 { (words(name)) } } @else { h4 { (words(name)) } }
                        (content(&inner, depth + 1))
                    }
                }
            }
        }
        Value::Array(elements) if elements.iter().any(Value::is_object) => rows(part),
        _ => html! { p { (value(part)) } },
    }
}

/// A list of objects as a table: a column for each name of the first rows. Columns of lists and of objects with such are named and left to
/// the JSON.
fn rows(part: &Part) -> Markup {
    let elements = part.elements();
    let shown = &elements[..elements.len().min(MOST_ROWS)];
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in shown.iter().filter_map(|row| row.value.as_object()).flatten() {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let is_deep = |name: &&str| shown.iter().any(|row| is_nested(&row.value[*name]) && !is_flat(&row.value[*name]));
    let (deep, columns): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_deep);
    let headers: Vec<String> = columns.iter().map(|name| words(name)).collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    let cells: Vec<Vec<Markup>> =
        shown.iter().map(|row| columns.iter().map(|name| value(&row.get(name))).collect()).collect();
    html! {
        (table(&headers, &cells))
        (left_out(elements.len(), shown.len(), "rows"))
        @if !deep.is_empty() { p class="note" { "In the JSON of the report each row also has " (deep.join(", ")) "." } }
    }
}

/// A plain value.
fn value(part: &Part) -> Markup {
    match part.value {
        Value::Null => html! { "–" },
        Value::Bool(is_true) => html! { @if *is_true { "yes" } @else { "no" } },
        Value::Number(_) => part.show(Format::Significant),
        Value::String(text) if is_code(text) => html! { code { (text) } },
        Value::String(text) => html! { (text) },
        Value::Array(elements) if elements.is_empty() => html! { "none" },
        Value::Array(elements) if !elements.iter().any(is_nested) => {
            let shown = part.elements();
            let shown = &shown[..shown.len().min(MOST_VALUES)];
            html! {
                @for (index, element) in shown.iter().enumerate() { @if index > 0 { ", " } (value(element)) }
                @if elements.len() > shown.len() { ", and " (elements.len() - shown.len()) " more" }
            }
        }
        Value::Object(members) if is_flat(part.value) => html! {
            @for (index, name) in members.keys().enumerate() {
                @if index > 0 { ", " }
                (words(name)) " " (value(&part.get(name)))
            }
        },
        other => html! { code { (other.to_string()) } },
    }
}

/// Returns true for an object of plain values.
fn is_flat(value: &Value) -> bool {
    value.as_object().is_some_and(|members| !members.values().any(is_nested))
}

/// Returns true for digests, ids and labels: what has no space and a digit or a sign.
fn is_code(text: &str) -> bool {
    !text.contains(' ') && text.contains(|character: char| character.is_ascii_digit() || "_:/()".contains(character))
}

fn is_nested(value: &Value) -> bool {
    match value {
        Value::Object(_) => true,
        Value::Array(elements) => elements.iter().any(|element| element.is_object() || element.is_array()),
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        _ => false,
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_any_kind_are_shown_and_numbers_keep_their_places() {
        let report = json!({ "fdr": 0.1, "empty": [], "rows": [{ "a": 1, "b": "x y" }, { "c": { "d": true }, "e": [[]] }], "in": { "digest": "sha256:00" } });
        let shown = section("Part", &Part::root(&report)).into_string();
        assert!(shown.contains(r#"<dt>fdr</dt><dd><data value="0.1" data-at="/fdr">0.1</data></dd>"#), "{shown}");
        assert!(shown.contains(r#"<data value="1" data-at="/rows/0/a">1</data>"#), "{shown}");
        assert!(shown.contains("<td>d yes</td>") && shown.contains("each row also has e."), "{shown}");
        assert!(shown.contains("<h3>in</h3><dl><dt>digest</dt><dd><code>sha256:00</code></dd></dl>"), "{shown}");
        assert_eq!(section("Part", &Part::root(&json!({}))).into_string(), "");
    }

    #[test]
    fn long_lists_say_what_they_leave_out() {
        let report = json!({ "rows": vec![json!({ "n": 1 }); 250], "values": vec![2; 80] });
        let shown = content(&Part::root(&report), 3).into_string();
        assert_eq!(shown.matches("<tr>").count(), 1 + MOST_ROWS);
        assert!(shown.contains("150 more rows are in the JSON of the report."), "{shown}");
        assert!(shown.contains("and 30 more"), "{shown}");
    }
}
