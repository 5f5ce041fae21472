//! Log-probability by position, which positional decay relies on.

use crate::chart::{Axis, Chart, MAX_POINTS, Mark};
use crate::figures::{figure, left_out, table};
use crate::numbers::{Format, Part};
use maud::{Markup, html};

/// Fewest tokens of a mean that is drawn: few texts are as long as the longest.
const FEWEST: f64 = 10.0;

const CLASSES: [(&str, &str); 3] =
    [("members", "members"), ("non_members", "non-members"), ("all", "texts without a label")];

/// Draws the mean log-probability at each position by class, over the first 256 positions; nothing where none are known.
pub fn profile(report: &Part) -> Markup {
    let positions = report.get("position_profile").elements();
    let shown = &positions[..positions.len().min(MAX_POINTS)];
    let classes: Vec<(&str, &str)> =
        CLASSES.into_iter().filter(|(name, _)| shown.iter().any(|row| !row.get(name).is_absent())).collect();
    if classes.is_empty() {
        return Markup::default();
    }
    let mean = |row: &Part, class: &str| {
        let mean = row.path(&[class, "mean_lp"]).number()?;
        (row.path(&[class, "count"]).number()? >= FEWEST).then_some(mean)
    };
    let position = |row: &Part| row.get("position").number().unwrap_or_default();
    let line = |(series, (class, _)): (usize, &(&str, &str))| Mark::Line {
        series,
        points: shown.iter().filter_map(|row| Some((position(row), mean(row, class)?))).collect(),
    };
    // Two standard errors on either side, where a report has them: earlier versions gave none.
    let band = |(series, (class, _)): (usize, &(&str, &str))| {
        let bounds = |row: &Part| {
            let (mean, error) = (mean(row, class)?, row.path(&[class, "standard_error_lp"]).number()?);
            Some((position(row), mean - 2.0 * error, mean + 2.0 * error))
        };
        Mark::Band { series, points: shown.iter().filter_map(bounds).collect() }
    };
    let bands: Vec<Mark> = classes.iter().enumerate().map(band).collect();
    let bounds = bands.iter().flat_map(|band| match band {
        Mark::Band { points, .. } => points.iter().flat_map(|(_, low, high)| [*low, *high]).collect(),
        _ => Vec::new(),
    });
    let bounds: Vec<f64> = bounds.collect();
    let means = shown.iter().flat_map(|row| classes.iter().filter_map(move |(class, _)| mean(row, class)));
    let chart = Chart {
        title: "Mean log-probability by position".to_owned(),
        description: "Mean log-probability of the tokens at each position, by class; the table has the numbers"
            .to_owned(),
        x: Axis::around(
            "position of the token",
            shown.iter().filter(|row| classes.iter().any(|(class, _)| mean(row, class).is_some())).map(position),
        ),
        y: Axis::around("mean log-probability", means.chain(bounds)),
        marks: bands.into_iter().chain(classes.iter().enumerate().map(line)).collect(),
    };
    let names: Vec<String> = classes.iter().map(|(_, name)| (*name).to_owned()).collect();
    let mut headers = vec!["position"];
    for (_, name) in &classes {
        headers.extend([*name, "standard error", "tokens"]);
    }
    let rows: Vec<Vec<Markup>> = shown
        .iter()
        .map(|row| {
            let cells = classes.iter().flat_map(|(class, _)| {
                let field = |name: &str, format: Format| row.path(&[class, name]).show(format);
                [
                    field("mean_lp", Format::Decimals),
                    field("standard_error_lp", Format::Decimals),
                    field("count", Format::Count),
                ]
            });
            std::iter::once(row.get("position").show(Format::Count)).chain(cells).collect()
        })
        .collect();
    let caption = "Mean log-probability of the tokens at each position; the bands are two standard errors on either \
                   side and take texts as independent. Positional decay supposes that the classes differ more at \
                   early positions than at late ones. Means over fewer than 10 tokens are in the table alone.";
    let table = table(&headers, &rows);
    let is_drawn = shown.iter().any(|row| classes.iter().any(|(class, _)| mean(row, class).is_some()));
    html! {
        h2 { "Position profile" }
        @if is_drawn { (figure(&chart.svg(), caption, &names, &table)) } @else { (table) }
        (left_out(positions.len(), shown.len(), "positions"))
        (prior_test(&report.get("prior_test")))
    }
}

fn prior_test(test: &Part) -> Markup {
    html! {
        @if !test.is_absent() {
            p {
                "Over " (test.get("positions").show(Format::Count)) " positions that every text reaches, the gap between the classes is "
                (test.get("early_gap").show(Format::Signed)) " nats in the first half and "
                (test.get("late_gap").show(Format::Signed)) " in the second (p = " (test.get("p_value").show(Format::PValue))
                " against the hypothesis that the early gap is no larger)."
            }
        }
    }
}
