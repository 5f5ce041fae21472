//! AUROC over a parameter that methods differ in: the rate of a decay, or the share of the tokens.

use crate::chart::{Axis, Chart, Mark};
use crate::figures::{figure, table};
use crate::numbers::{Format, Part};
use maud::{Markup, html};
use serde_json::Value;

/// Fewest values of a parameter that make a curve.
const FEWEST: usize = 3;
/// Maximum number of curves.
const MOST_CURVES: usize = 4;

/// Parameters, each with its place in the definition of a method.
const PARAMETERS: [(&str, &[&str]); 2] = [("alpha", &["pdr", "alpha"]), ("k", &["k"])];

/// Draws the curves of each parameter that methods are given at least three values of.
pub fn sweeps(report: &Part) -> Markup {
    html! { @for (name, place) in PARAMETERS { (sweep(report, name, place)) } }
}

/// Methods that differ in one parameter alone.
struct Sweep<'a> {
    /// The label of the first one without the parameter.
    label: String,
    /// Parts that they have in common, as JSON.
    common: String,
    /// The value of each, and its AUROC.
    points: Vec<(f64, Part<'a>)>,
}

fn sweep(report: &Part, name: &str, place: &[&str]) -> Markup {
    let mut all: Vec<Sweep> = Vec::new();
    let definitions = report.path(&["provenance", "request", "methods"]).elements();
    let methods = report.get("methods").elements();
    for definition in &definitions {
        let Some(method) = methods.iter().find(|method| method.get("label").value == definition.get("label").value)
        else {
            continue;
        };
        let (value, auroc) = (definition.path(place).number(), method.get("auroc"));
        let (Some(value), Some(_)) = (value, auroc.number()) else { continue };
        let label = definition.get("label").text();
        let common = without(definition.value, place).to_string();
        match all.iter_mut().find(|sweep| sweep.common == common) {
            Some(sweep) => sweep.points.push((value, auroc)),
            None => {
                let label = label.replace(&format!("{name}={value}"), &format!("{name}=…"));
                all.push(Sweep { label, common, points: vec![(value, auroc)] });
            }
        }
    }
    all.retain(|sweep| sweep.points.len() >= FEWEST);
    all.truncate(MOST_CURVES);
    if all.is_empty() {
        return Markup::default();
    }
    all.iter_mut().for_each(|sweep| sweep.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    let points = |sweep: &Sweep| -> Vec<(f64, f64)> {
        sweep.points.iter().filter_map(|(value, auroc)| Some((*value, auroc.number()?))).collect()
    };
    let curves: Vec<Vec<(f64, f64)>> = all.iter().map(points).collect();
    let flat = || curves.iter().flatten();
    let chart = Chart {
        title: format!("AUROC over {name}"),
        description: "A curve for each method; the table has the numbers".to_owned(),
        x: Axis::around(name, flat().map(|point| point.0)),
        y: Axis::around("AUROC", flat().map(|point| point.1)),
        marks: curves.iter().cloned().enumerate().map(|(series, points)| Mark::Line { series, points }).collect(),
    };
    let names: Vec<String> = all.iter().map(|sweep| sweep.label.clone()).collect();
    let rows = all.iter().flat_map(|sweep| {
        let row = |(value, auroc): &(f64, Part)| {
            vec![
                html! { code { (sweep.label) } },
                html! { (Format::Significant.text(*value)) },
                auroc.show(Format::Decimals),
            ]
        };
        sweep.points.iter().map(row)
    });
    let caption = format!(
        "AUROC of methods that differ in {name} alone. The best value of a curve is the best of several tries: it says nothing about other \
         texts, and its p-value is the adjusted one."
    );
    let rows: Vec<Vec<Markup>> = rows.collect();
    html! { h3 { "AUROC over " (name) } (figure(&chart.svg(), &caption, &names, &table(&["method", name, "AUROC"], &rows))) }
}

/// The definition of a method without its label and the parameter at a place.
fn without(definition: &Value, place: &[&str]) -> Value {
    let mut rest = definition.clone();
    if let Some(members) = rest.as_object_mut() {
        members.remove("label");
    }
    let pointer = place.iter().rev().skip(1).rev().fold(String::new(), |pointer, name| format!("{pointer}/{name}"));
    if let (Some(last), Some(Value::Object(members))) = (place.last(), rest.pointer_mut(&pointer)) {
        members.remove(*last);
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn methods_that_differ_in_alpha_alone_are_a_curve() {
        let definition = |name: &str, alpha: f64| json!({ "label": format!("{name}+linear(alpha={alpha})"), "name": name, "pdr": { "decay": "linear", "alpha": alpha } });
        let mut definitions: Vec<Value> = [1.0, 0.25, 0.5].map(|alpha| definition("loss", alpha)).into();
        definitions.push(definition("zlib", 0.5));
        definitions.push(json!({ "label": "loss", "name": "loss" }));
        let method = |(n, definition): (i32, &Value)| json!({ "label": definition["label"], "auroc": 0.6 + 0.01 * f64::from(n) });
        let methods: Vec<Value> = (0..5).zip(&definitions).map(method).collect();
        let report = json!({ "methods": methods, "provenance": { "request": { "methods": definitions } } });
        let drawn = sweeps(&Part::root(&report)).into_string();
        assert!(drawn.contains("AUROC over alpha") && !drawn.contains("AUROC over k"), "{drawn}");
        let places: Vec<usize> =
            ["/methods/1/auroc", "/methods/2/auroc", "/methods/0/auroc"].map(|path| drawn.find(path).unwrap()).into();
        assert!(places.is_sorted(), "in the order of alpha: {drawn}");
        assert!(drawn.contains("loss+linear(alpha=…)") && !drawn.contains("zlib"), "{drawn}");
    }
}
