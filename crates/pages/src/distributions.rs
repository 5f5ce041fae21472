//! Distributions of the scores of a method, by class.

use crate::MethodScores;
use crate::chart::{Axis, Chart, Mark};
use crate::figures::{figure, table};
use crate::numbers::Format;
use maud::{Markup, html};

/// Number of bars of each class.
const BARS: usize = 40;

/// Draws the share of each class's scores in equal intervals between the lowest and the highest score; nothing without scores.
pub fn histogram(scores: &MethodScores) -> Markup {
    let classes: Vec<(&str, &[f64])> = [
        ("members", scores.members.as_slice()),
        ("non-members", scores.non_members.as_slice()),
        ("texts without a label", scores.unlabelled.as_slice()),
    ]
    .into_iter()
    .filter(|(_, scores)| !scores.is_empty())
    .collect();
    if classes.is_empty() {
        return Markup::default();
    }
    let x = Axis::around("score", classes.iter().flat_map(|(_, scores)| scores.iter().copied()));
    let width = (x.to - x.from) / BARS as f64;
    let shares: Vec<Vec<f64>> = classes.iter().map(|(_, scores)| shares(scores, x.from, width)).collect();
    let from = |bar: usize| x.from + width * bar as f64;
    let steps = shares.iter().enumerate().map(|(series, shares)| Mark::Steps {
        series,
        points: shares.iter().chain(shares.last()).enumerate().map(|(bar, share)| (from(bar), *share)).collect(),
    });
    let bars = shares.iter().enumerate().map(|(series, shares)| Mark::Bars {
        series,
        bars: shares.iter().enumerate().map(|(bar, share)| (from(bar), from(bar + 1), *share)).collect(),
    });
    let highest = shares.iter().flatten().copied().fold(0.0, f64::max);
    let marks = bars.chain(steps).collect();
    let names: Vec<String> = classes.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut headers = vec!["score from"];
    headers.extend(classes.iter().map(|(name, _)| *name));
    let rows: Vec<Vec<Markup>> = (0..BARS)
        .map(|bar| {
            let cells = shares.iter().map(|shares| html! { (Format::Decimals.text(shares[bar])) });
            std::iter::once(html! { (format!("{:.4}", from(bar))) }).chain(cells).collect()
        })
        .collect();
    let chart = Chart {
        title: format!("Scores of {}", scores.label),
        description: "Share of each class's scores in 40 equal intervals; the table has the numbers".to_owned(),
        x,
        y: Axis::around("share of the class", [0.0, highest]),
        marks,
    };
    let caption = format!("Scores of {} by class, as shares of the class in 40 equal intervals.", scores.label);
    figure(&chart.svg(), &caption, &names, &table(&headers, &rows))
}

/// The share of the scores in each interval; the highest score is in the last one.
fn shares(scores: &[f64], from: f64, width: f64) -> Vec<f64> {
    let mut shares = vec![0.0; BARS];
    for score in scores {
        let bar = (((score - from) / width).max(0.0) as usize).min(BARS - 1);
        shares[bar] += 1.0 / scores.len() as f64;
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_score_is_in_one_interval() {
        let shares = shares(&[0.0, 0.1, 4.0, 4.0], 0.0, 0.1);
        assert_eq!(shares[0], 0.25);
        assert_eq!(shares[1], 0.25);
        assert_eq!(shares[BARS - 1], 0.5);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    }
}
