//! The ROC curve of the primary method, with its band, beside those of some others.

use crate::MethodScores;
use crate::chart::{Axis, Chart, MAX_POINTS, Mark};
use crate::figures::{figure, table};
use crate::numbers::Format;
use maud::{Markup, html};
use mia::statistics::{LabelledScore, Roc, RocPoint, clopper_pearson};

/// Confidence of the band at each false-positive rate.
const CONFIDENCE: f64 = 0.95;

/// Draws the curves over linear and logarithmic false-positive rates, the first method with a band; nothing where no method has scores of
/// both classes.
pub fn curves(scores: &[MethodScores]) -> Markup {
    let curves: Vec<Curve> = scores.iter().filter_map(Curve::new).collect();
    let Some(first) = curves.first() else { return Markup::default() };
    let names: Vec<String> = curves.iter().map(|curve| curve.label.clone()).collect();
    let [members, non_members] = first.counts;
    let caption = |scale: &str| {
        format!(
            "ROC of {members} members and {non_members} non-members, {scale} scale. The band of {} is the 95 % interval of its \
             true-positive rate at each false-positive rate by Clopper and Pearson: it takes the threshold as given and texts as \
             independent. The dashed line is chance.",
            first.label
        )
    };
    let linear = Axis::shares("false-positive rate");
    let powers = Axis::shares_by_powers("false-positive rate", 1.0 / non_members as f64);
    html! {
        @for (axis, scale) in [(linear, "linear"), (powers, "logarithmic")] {
            @let rates = grid(&axis);
            (figure(&drawing(&curves, axis, &rates, scale), &caption(scale), &names, &rows(&curves, &rates)))
        }
    }
}

/// A step function from false-positive rates to the largest true-positive rates within them.
struct Curve {
    label: String,
    points: Vec<RocPoint>,
    /// Members and non-members that have a score.
    counts: [usize; 2],
}

impl Curve {
    fn new(scores: &MethodScores) -> Option<Self> {
        let labelled = |scores: &[f64], member: bool| -> Vec<LabelledScore> {
            scores.iter().map(|&score| LabelledScore { score, member }).collect()
        };
        let all = [labelled(&scores.members, true), labelled(&scores.non_members, false)].concat();
        let points = Roc::new(&all).ok()?.points();
        Some(Self { label: scores.label.clone(), points, counts: [scores.members.len(), scores.non_members.len()] })
    }

    /// The largest true-positive rate with a false-positive rate of at most `fpr`.
    fn rate_at(&self, fpr: f64) -> f64 {
        let within = self.points.partition_point(|point| point.fpr <= fpr);
        self.points[within.saturating_sub(1)].tpr
    }

    fn interval_at(&self, fpr: f64) -> [f64; 2] {
        let members = self.counts[0];
        let recognised = (self.rate_at(fpr) * members as f64).round() as usize;
        clopper_pearson(recognised, members, CONFIDENCE).unwrap_or([0.0, 1.0])
    }
}

/// False-positive rates at even distances along an axis.
fn grid(axis: &Axis) -> Vec<f64> {
    let share = |n: usize| n as f64 / (MAX_POINTS - 1) as f64;
    let place = |share: f64| match axis.is_logarithmic {
        true => axis.from * (axis.to / axis.from).powf(share),
        false => axis.from + (axis.to - axis.from) * share,
    };
    (0..MAX_POINTS).map(|n| place(share(n))).collect()
}

fn drawing(curves: &[Curve], axis: Axis, rates: &[f64], scale: &str) -> Markup {
    let band = rates.iter().map(|&fpr| {
        let [low, high] = curves[0].interval_at(fpr);
        (fpr, low, high)
    });
    let mut marks = vec![Mark::Diagonal, Mark::Band { series: 0, points: band.collect() }];
    marks.extend(curves.iter().enumerate().map(|(series, curve)| {
        let points = rates.iter().map(|&fpr| (fpr, curve.rate_at(fpr))).collect();
        Mark::Steps { series, points }
    }));
    let chart = Chart {
        title: format!("ROC, {scale} scale"),
        description: "True-positive rate by false-positive rate; the table has every 16th point".to_owned(),
        x: axis,
        y: Axis::shares("true-positive rate"),
        marks,
    };
    chart.svg()
}

/// Every 16th rate of the figure.
fn rows(curves: &[Curve], rates: &[f64]) -> Markup {
    let first = format!("{}, 95 %", curves[0].label);
    let mut headers = vec!["false-positive rate"];
    headers.extend(curves.iter().map(|curve| curve.label.as_str()));
    headers.push(&first);
    let number = |value: f64| html! { (Format::Decimals.text(value)) };
    let row = |&fpr: &f64| {
        let [low, high] = curves[0].interval_at(fpr);
        let rates = curves.iter().map(|curve| number(curve.rate_at(fpr)));
        let interval = html! { (Format::Decimals.text(low)) " to " (Format::Decimals.text(high)) };
        std::iter::once(html! { (format!("{fpr:.4}")) }).chain(rates).chain([interval]).collect()
    };
    table(&headers, &rates.iter().skip(15).step_by(16).map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(members: &[f64], non_members: &[f64]) -> MethodScores {
        MethodScores { members: members.to_vec(), non_members: non_members.to_vec(), ..MethodScores::new("m") }
    }

    #[test]
    fn a_curve_has_the_largest_rate_within_each_rate() {
        let curve = Curve::new(&scores(&[4.0, 3.0, 1.0], &[2.0, 0.0])).unwrap();
        for (fpr, tpr) in [(0.0, 2.0 / 3.0), (0.49, 2.0 / 3.0), (0.5, 1.0), (1.0, 1.0)] {
            assert!((curve.rate_at(fpr) - tpr).abs() < 1e-12, "{fpr}");
        }
        // 2 of 3 by Clopper and Pearson.
        let [low, high] = curve.interval_at(0.0);
        assert!((low - 0.094_299_32).abs() < 1e-6 && (high - 0.991_596_24).abs() < 1e-6, "{low} {high}");
    }

    #[test]
    fn scores_of_one_class_have_no_curve() {
        assert_eq!(curves(&[scores(&[1.0], &[])]).into_string(), "");
        assert_eq!(curves(&[]).into_string(), "");
    }

    #[test]
    fn a_million_texts_are_drawn_as_many_points_as_a_thousand() {
        let many = |count: u32| {
            let spread = |n: u32| f64::from(n * 7_919 % count);
            let members: Vec<f64> = (0..count).map(|n| spread(n) + f64::from(count) / 5.0).collect();
            curves(&[scores(&members, &(0..count).map(spread).collect::<Vec<_>>())]).into_string().len()
        };
        let (few, more) = (many(1_000), many(100_000));
        assert!(more < few + few / 4, "{few} {more}");
    }
}
