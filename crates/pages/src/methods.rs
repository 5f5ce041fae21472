//! Tables of methods: how well each separates the classes, and what its tests say.

use crate::figures::{label, table};
use crate::numbers::{Format, Part};
use maud::{Markup, html};

/// The tables of a whole audit.
pub fn tables(report: &Part) -> Markup {
    let methods = report.get("methods").elements();
    let tests: Vec<Vec<Markup>> = methods.iter().filter_map(test).collect();
    html! {
        h2 { "Methods" }
        (separations(&methods))
        @if !tests.is_empty() {
            p {
                "p-values are one-sided, by permutations of the clusters' labels. The verdict's method was settled beforehand and needs no \
                 adjustment; for a method that is chosen by its result, use the adjusted p-value (Westfall and Young). “Beside the baseline” is the AUROC with positional decay minus that \
                 without it, its p-value adjusted by Holm."
            }
            (table(
                &["method", "p", "adjusted p", "control", "beyond it", "95 % interval", "adjusted p", "beside the baseline", "adjusted p"],
                &tests,
            ))
        }
        (negative_controls(&methods))
    }
}

/// A line a method: AUROC and true-positive rates, or how many texts it scores where there are no labels.
pub fn separations(methods: &[Part]) -> Markup {
    let Some(first) = methods.first() else { return Markup::default() };
    if methods.iter().all(|method| method.get("auroc").is_absent()) {
        let rows: Vec<Vec<Markup>> = methods
            .iter()
            .map(|method| vec![label(&method.get("label")), method.get("scored").show(Format::Count)])
            .collect();
        return table(&["method", "texts scored"], &rows);
    }
    let rates = methods.iter().map(|method| method.get("tpr_at_fpr").elements()).find(|rates| !rates.is_empty());
    let targets: Vec<String> = rates.unwrap_or_default().iter().map(|rate| target(&rate.get("fpr"))).collect();
    let with_interval = !first.get("bootstrap").is_absent();
    let mut headers = vec!["method", "AUROC", "standard error"];
    if with_interval {
        headers.push("bootstrap interval");
    }
    headers.extend(targets.iter().map(String::as_str));
    let row = |method: &Part| {
        let mut cells = vec![
            label(&method.get("label")),
            method.get("auroc").show(Format::Decimals),
            method.get("auroc_standard_error").show(Format::Decimals),
        ];
        if with_interval {
            cells.push(method.path(&["bootstrap", "auroc", "interval"]).show_interval(Format::Decimals));
        }
        cells.extend((0..targets.len()).map(|place| {
            let rate = method.get("tpr_at_fpr").element(place);
            html! { (rate.get("tpr").show(Format::Decimals)) br; small { (rate.get("interval").show_interval(Format::Decimals)) } }
        }));
        cells
    };
    table(&headers, &methods.iter().map(row).collect::<Vec<_>>())
}

fn target(rate: &Part) -> String {
    format!("TPR at FPR {}", Format::Percent.text(rate.number().unwrap_or_default()))
}

/// The tests of a method as a row; `None` where there are none.
fn test(method: &Part) -> Option<Vec<Markup>> {
    let (control, baseline) = (method.get("control"), method.get("versus_baseline"));
    if method.get("p_value").is_absent() && control.is_absent() && baseline.is_absent() {
        return None;
    }
    Some(vec![
        label(&method.get("label")),
        method.get("p_value").show(Format::PValue),
        method.get("p_value_adjusted").show(Format::PValue),
        control.get("auroc").show(Format::Decimals),
        control.get("difference").show(Format::Signed),
        control.get("interval").show_interval(Format::Signed),
        control.get("p_value_adjusted").show(Format::PValue),
        baseline.get("delta").show(Format::Signed),
        baseline.get("p_value_adjusted").show(Format::PValue),
    ])
}

fn negative_controls(methods: &[Part]) -> Markup {
    let controls = methods.iter().flat_map(|method| {
        let controls = method.path(&["control", "negative_controls"]).elements();
        controls.into_iter().map(move |control| (method.get("label"), control))
    });
    let row = |(method, control): (Part, Part)| {
        vec![
            label(&method),
            html! { (control.get("groups").element(0).text()) " against " (control.get("groups").element(1).text()) },
            control.get("difference").show(Format::Signed),
            control.get("interval").show_interval(Format::Signed),
        ]
    };
    let rows: Vec<Vec<Markup>> = controls.map(row).collect();
    html! {
        @if !rows.is_empty() {
            h3 { "Negative controls" }
            p { "The same difference between groups of non-members, where there is nothing to find. The intervals hold together at 95 %." }
            (table(&["method", "groups", "difference", "interval"], &rows))
        }
    }
}
