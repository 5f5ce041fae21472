//! Charts as SVG: lines with bands, steps, bars and intervals over two axes. Each has a title and a description for those who do not
//! see it; the caller adds a table of the numbers.

use maud::{Markup, html};

/// Size of a chart, in units of its own; a page scales it to its width.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 340.0;
/// Space for the labels of the axes: left, right, top and bottom.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 46.0;
/// Height of a row of intervals, in the same units.
const ROW: f64 = 30.0;

/// Values beyond this are drawn at it: their differences would not be finite.
const FARTHEST: f64 = 1e100;

/// Maximum number of points of a line: a report of a million samples is no longer than one of a thousand.
pub const MAX_POINTS: usize = 256;

/// A scale with its marks.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub label: String,
    pub from: f64,
    pub to: f64,
    pub is_logarithmic: bool,
    /// Values that are marked, with their texts.
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    /// A linear axis that holds the values, with some five round marks. Without finite values it goes from 0 to 1.
    pub fn around(label: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)));
        let (low, high) =
            if low <= high { (low.clamp(-FARTHEST, FARTHEST), high.clamp(-FARTHEST, FARTHEST)) } else { (0.0, 1.0) };
        // Values that are equal, or nearly so, are in the middle.
        let nearest = (low.abs().max(high.abs()) * 1e-9).max(1e-9);
        let (low, high) =
            if high - low > nearest { (low, high) } else { (low - nearest.max(0.5), high + nearest.max(0.5)) };
        let step = round_step((high - low) / 5.0);
        let (from, to) = ((low / step).floor() * step, (high / step).ceil() * step);
        let digits = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let count = ((to - from) / step).round().clamp(1.0, 12.0) as usize;
        let ticks = (0..=count).map(|n| {
            let value = from + n as f64 * step;
            (value, if step < 1e6 { format!("{:.digits$}", value + 0.0) } else { format!("{value:.2e}") })
        });
        Self { label: label.into(), from, to, is_logarithmic: false, ticks: ticks.collect() }
    }

    /// An axis of shares from 0 to 1.
    pub fn shares(label: impl Into<String>) -> Self {
        let ticks = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0].map(|value| (value, format!("{value:.1}")));
        Self { label: label.into(), from: 0.0, to: 1.0, is_logarithmic: false, ticks: ticks.to_vec() }
    }

    /// An axis of shares by powers of ten, from the power at or below `least`, at most 0.1, to 1.
    pub fn shares_by_powers(label: impl Into<String>, least: f64) -> Self {
        let powers = (-least.clamp(1e-9, 0.1).log10()).ceil() as i32;
        let ticks = (-powers..=0).map(|power| (10f64.powi(power), format!("{}", 10f64.powi(power))));
        let (label, from) = (label.into(), 10f64.powi(-powers));
        Self { label, from, to: 1.0, is_logarithmic: true, ticks: ticks.collect() }
    }

    /// The place of a value as a share of the axis's length; values beyond its ends are at them.
    fn place(&self, value: f64) -> f64 {
        let scaled = |value: f64| if self.is_logarithmic { value.max(f64::MIN_POSITIVE).ln() } else { value };
        let share = (scaled(value) - scaled(self.from)) / (scaled(self.to) - scaled(self.from));
        share.clamp(0.0, 1.0)
    }
}

/// The next round number above: 1, 2 or 5 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// A part of a drawing. `series` chooses colour and dashes, which the style of the page gives, from 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    Line {
        series: usize,
        points: Vec<(f64, f64)>,
    },
    /// A line that goes on at its height until the next point.
    Steps {
        series: usize,
        points: Vec<(f64, f64)>,
    },
    /// An area between two heights.
    Band {
        series: usize,
        points: Vec<(f64, f64, f64)>,
    },
    /// Bars from 0, each from one place to another.
    Bars {
        series: usize,
        bars: Vec<(f64, f64, f64)>,
    },
    /// A dashed line from corner to corner: chance.
    Diagonal,
}

/// A drawing over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub title: String,
    pub description: String,
    pub x: Axis,
    pub y: Axis,
    pub marks: Vec<Mark>,
}

impl Chart {
    pub fn svg(&self) -> Markup {
        let (x, y) = (|value: f64| self.left(value), |value: f64| self.top(value));
        let path = |points: &[(f64, f64)]| polyline(points.iter().map(|&(a, b)| (x(a), y(b))));
        frame(
            &self.title,
            &self.description,
            HEIGHT,
            &html! {
                @for (value, text) in &self.y.ticks {
                    line class="grid" x1=(LEFT) x2=(WIDTH - RIGHT) y1=(shown(y(*value))) y2=(shown(y(*value))) {}
                    text x=(LEFT - 6.0) y=(shown(y(*value) + 4.0)) text-anchor="end" { (text) }
                }
                @for (value, text) in &self.x.ticks {
                    line class="grid" x1=(shown(x(*value))) x2=(shown(x(*value))) y1=(TOP) y2=(HEIGHT - BOTTOM) {}
                    text x=(shown(x(*value))) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { (text) }
                }
                text x=(shown(f64::midpoint(LEFT, WIDTH - RIGHT))) y=(HEIGHT - 8.0) text-anchor="middle" { (self.x.label) }
                text x="14" y=(shown(f64::midpoint(TOP, HEIGHT - BOTTOM))) text-anchor="middle"
                    transform=(format!("rotate(-90 14 {})", shown(f64::midpoint(TOP, HEIGHT - BOTTOM)))) { (self.y.label) }
                @for mark in &self.marks {
                    @match mark {
                        Mark::Line { series, points } => polyline class=(format!("line s{series}")) points=(path(points)) {},
                        Mark::Steps { series, points } => polyline class=(format!("line s{series}")) points=(path(&steps(points))) {},
                        Mark::Band { series, points } => polygon class=(format!("band s{series}")) points=({
                            let low = points.iter().map(|&(a, low, _)| (a, low));
                            let high = points.iter().rev().map(|&(a, _, high)| (a, high));
                            path(&low.chain(high).collect::<Vec<_>>())
                        }) {},
                        Mark::Bars { series, bars } => @for &(from, to, height) in bars {
                            rect class=(format!("bar s{series}")) x=(shown(x(from))) y=(shown(y(height)))
                                width=(shown(x(to) - x(from))) height=(shown(y(0.0) - y(height))) {}
                        },
                        Mark::Diagonal => polyline class="chance" points=(path(&self.diagonal())) {},
                    }
                }
            },
        )
    }

    fn left(&self, value: f64) -> f64 {
        LEFT + self.x.place(value) * (WIDTH - LEFT - RIGHT)
    }

    fn top(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - self.y.place(value) * (HEIGHT - TOP - BOTTOM)
    }

    /// Points of the diagonal, which is a curve where an axis is logarithmic.
    fn diagonal(&self) -> Vec<(f64, f64)> {
        let place = |n: u32| {
            let share = f64::from(n) / 64.0;
            let Axis { from, to, is_logarithmic, .. } = self.x;
            if is_logarithmic { from * (to / from).powf(share) } else { from + (to - from) * share }
        };
        (0..=64).map(|n| (place(n), place(n))).collect()
    }
}

/// A number with its interval, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct IntervalRow {
    pub name: String,
    /// The point; absent where there is only a bound.
    pub value: Option<f64>,
    /// Ends of the line; a bound on one side goes to the end of the axis.
    pub interval: Option<[f64; 2]>,
}

/// Rows of numbers with their intervals over one axis, and a line at `reference`.
pub fn intervals(title: &str, description: &str, axis: &Axis, reference: f64, rows: &[IntervalRow]) -> Markup {
    let bottom = TOP + ROW * rows.len() as f64;
    let left = 250.0;
    let x = |value: f64| left + axis.place(value) * (WIDTH - left - RIGHT);
    frame(
        title,
        description,
        bottom + BOTTOM,
        &html! {
            @for (value, text) in &axis.ticks {
                line class="grid" x1=(shown(x(*value))) x2=(shown(x(*value))) y1=(TOP) y2=(bottom) {}
                text x=(shown(x(*value))) y=(bottom + 16.0) text-anchor="middle" { (text) }
            }
            line class="chance" x1=(shown(x(reference))) x2=(shown(x(reference))) y1=(TOP) y2=(bottom) {}
            text x=(shown(f64::midpoint(left, WIDTH - RIGHT))) y=(bottom + 36.0) text-anchor="middle" { (axis.label) }
            @for (index, row) in rows.iter().enumerate() {
                @let middle = TOP + ROW * (index as f64 + 0.5);
                text x=(left - 10.0) y=(middle + 4.0) text-anchor="end" { (row.name) }
                @if let Some([low, high]) = row.interval {
                    line class="line s0" x1=(shown(x(low))) x2=(shown(x(high))) y1=(middle) y2=(middle) {}
                }
                @if let Some(value) = row.value {
                    circle class="point s0" cx=(shown(x(value))) cy=(middle) r="5" {}
                }
            }
        },
    )
}

/// Cells of equal width, each of a height.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strip {
    pub heights: Vec<usize>,
    /// Height of a cell that is full.
    pub highest: usize,
}

/// Height of a strip, in the units of all drawings.
const STRIP: f64 = 30.0;

/// Draws a strip: one bar for each run of cells of the same height.
pub fn strip(title: &str, strip: &Strip) -> Markup {
    let width = WIDTH / strip.heights.len().max(1) as f64;
    let mut bars: Vec<(usize, usize, usize)> = Vec::new();
    for (cell, &height) in strip.heights.iter().enumerate() {
        match bars.last_mut() {
            Some((_, to, of_bar)) if *of_bar == height => *to = cell + 1,
            _ => bars.push((cell, cell + 1, height)),
        }
    }
    frame(
        title,
        "A bar for each part, as high as what is completed there",
        STRIP,
        &html! {
            rect class="track" x="0" y="0" width=(WIDTH) height=(STRIP) {}
            @for (from, to, height) in bars.into_iter().filter(|bar| bar.2 > 0) {
                @let height = STRIP * height as f64 / strip.highest as f64;
                rect class="cell" x=(shown(from as f64 * width)) y=(shown(STRIP - height))
                    width=(shown((to - from) as f64 * width)) height=(shown(height)) {}
            }
        },
    )
}

/// A figure's drawing with what is said of it to those who do not see it.
fn frame(title: &str, description: &str, height: f64, content: &Markup) -> Markup {
    html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(format!("{title}. {description}")) {
            title { (title) }
            (content)
        }
    }
}

/// A coordinate, to a tenth of a unit.
fn shown(value: f64) -> String {
    let tenths = (value * 10.0).round() / 10.0;
    format!("{}", tenths + 0.0)
}

fn polyline(points: impl Iterator<Item = (f64, f64)>) -> String {
    let texts: Vec<String> = points.map(|(x, y)| format!("{},{}", shown(x), shown(y))).collect();
    texts.join(" ")
}

/// The corners of a line that goes on at its height until the next point.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = points.windows(2).flat_map(|pair| [pair[0], (pair[1].0, pair[0].1)]);
    corners.chain(points.last().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_hold_the_values() {
        let axis = Axis::around("score", [-3.17, -0.42, 1.9]);
        assert_eq!((axis.from, axis.to), (-4.0, 2.0));
        let texts: Vec<&str> = axis.ticks.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["-4", "-2", "0", "2"]);
        let small = Axis::around("p", [0.012, 0.019]);
        assert_eq!(small.ticks.first().map(|(_, text)| text.as_str()), Some("0.012"));
        assert_eq!(Axis::around("none", []).to, 1.0);
        for values in [[1e17; 2], [1e308; 2], [-1e308, 1e308], [5e-324, 0.0], [1e-310, 0.0], [1e17, 1e17 + 64.0]] {
            let axis = Axis::around("wild", values);
            let places = values.map(|value| axis.place(value));
            assert!(
                axis.ticks.len() <= 13 && places.iter().all(|place| (0.0..=1.0).contains(place)),
                "{values:?}: {axis:?}"
            );
        }
        let one = Axis::around("one", [2.0, f64::NAN]);
        assert!(one.from < 2.0 && 2.0 < one.to, "{one:?}");
    }

    #[test]
    fn powers_begin_at_or_below_the_least_share() {
        let texts = |least: f64| -> Vec<String> {
            Axis::shares_by_powers("fpr", least).ticks.into_iter().map(|(_, text)| text).collect()
        };
        assert_eq!(texts(0.002), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(texts(0.001), ["0.001", "0.01", "0.1", "1"]);
        assert_eq!(texts(0.5), ["0.1", "1"]);
    }

    #[test]
    fn a_step_goes_on_until_the_next_point() {
        assert_eq!(
            steps(&[(0.0, 0.0), (0.5, 0.8), (1.0, 1.0)]),
            [(0.0, 0.0), (0.5, 0.0), (0.5, 0.8), (1.0, 0.8), (1.0, 1.0)]
        );
    }

    #[test]
    fn texts_within_a_drawing_are_escaped() {
        let name = "</svg><script>alert(1)</script>".to_owned();
        let rows = [IntervalRow { name, value: Some(0.7), interval: Some([0.6, 0.8]) }];
        let svg = intervals("t\"><", "d", &Axis::shares("AUROC"), 0.5, &rows).into_string();
        assert!(!svg.contains("<script"), "{svg}");
        assert_eq!(svg.matches("</svg>").count(), 1, "{svg}");
    }
}
