//! The texts among works that the model cannot have seen, by their most probable windows.
//!
//! The more windows a text has, the larger is the largest `log_p` by chance, so as many windows count of each work as the one
//! with the fewest has. They are disjoint, each begins a pass, so that all are given `prefix` tokens, and they are evenly spread from
//! the beginning to the end of a work: which of them count depends on no score.

use super::extraction::{ExtractionWindow, TextExtraction};
use super::passes::WindowShape;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The works that texts are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ControlWorks {
    /// Texts of the control that have windows.
    pub works: usize,
    /// Disjoint windows that begin a pass and count of each work: as many as the text with the fewest has, those of the control
    /// included.
    pub windows_per_work: usize,
    /// The smallest p-value that a text can have among them: 1 / (works + 1).
    pub smallest_p_value: f64,
}

impl ControlWorks {
    /// Gives each text that has windows its p-value among the works of the control: (1 + works whose statistic is at least as large) /
    /// (1 + works). `None` if no text, or none of the control, has windows.
    pub fn compare(
        texts: &mut [TextExtraction],
        control: &[TextExtraction],
        shape: WindowShape,
        windows_per_pass: usize,
    ) -> Option<Self> {
        let step = shape.tokens().div_ceil(shape.stride.max(1)).next_multiple_of(windows_per_pass.max(1));
        let disjoint = |text: &TextExtraction| text.windows.len().div_ceil(step);
        let least = |texts: &[TextExtraction]| texts.iter().map(disjoint).filter(|count| *count > 0).min();
        let windows_per_work = least(texts)?.min(least(control)?);
        let statistic = |text: &TextExtraction| largest(&text.windows, step, windows_per_work);
        let known: Vec<f64> = control.iter().filter_map(statistic).collect();
        let places = known.len() as f64 + 1.0;
        for text in texts {
            let above = |statistic: f64| known.iter().filter(|known| **known >= statistic).count() as f64;
            text.p_value = statistic(text).map(|statistic| (1.0 + above(statistic)) / places);
        }
        Some(Self { works: known.len(), windows_per_work, smallest_p_value: 1.0 / places })
    }
}

/// The largest `log_p` among `count` windows, evenly spread over every `step`-th; `None` without windows.
fn largest(windows: &[ExtractionWindow], step: usize, count: usize) -> Option<f64> {
    let disjoint = windows.len().div_ceil(step);
    let spread = (0..count).map(|window| (2 * window + 1) * disjoint / (2 * count) * step);
    spread.filter_map(|window| windows.get(window)).map(|window| window.log_p).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(log_ps: &[f64]) -> TextExtraction {
        let window = |(start, &log_p)| ExtractionWindow {
            start,
            suffix_start: start + 1,
            end: start + 2,
            given: None,
            log_p,
            greedy: false,
            tries_for_half: None,
        };
        TextExtraction { windows: log_ps.iter().enumerate().map(window).collect(), ..TextExtraction::default() }
    }

    fn shape(stride: usize) -> WindowShape {
        WindowShape { prefix: 1, suffix: 1, stride, ..WindowShape::default() }
    }

    #[test]
    fn a_text_stands_among_works_by_its_largest_window() {
        let mut texts = [work(&[-1.0, -9.0]), work(&[-9.0, -5.0]), work(&[-9.0, -9.5]), work(&[])];
        let control = [work(&[-5.0, -8.0]), work(&[-7.0, -9.0]), work(&[-8.5, -9.0]), work(&[])];
        let known = ControlWorks::compare(&mut texts, &control, shape(2), 1);
        assert_eq!(known, Some(ControlWorks { works: 3, windows_per_work: 2, smallest_p_value: 0.25 }));
        // Above all three; as large as one; below all.
        assert_eq!(texts.map(|text| text.p_value), [Some(0.25), Some(0.5), Some(1.0), None]);
    }

    #[test]
    fn as_many_disjoint_windows_count_as_the_shortest_work_has() {
        // Windows of two tokens begin at each token, so that every second one is disjoint.
        let long = work(&[-9.0, -1.0, -8.0, -1.0, -7.0, -1.0, -2.0, -1.0]);
        let counted = |count| largest(&long.windows, 2, count);
        // The disjoint windows have -9, -8, -7 and -2: the third counts, the second and the fourth, the first and the last two, all.
        assert_eq!([1, 2, 3, 4].map(counted), [Some(-7.0), Some(-2.0), Some(-2.0), Some(-2.0)]);
        let mut texts = [long];
        let known = ControlWorks::compare(&mut texts, &[work(&[-8.0, -8.0, -8.0])], shape(1), 1);
        assert_eq!(known.map(|known| known.windows_per_work), Some(2));
        assert_eq!(texts[0].p_value, Some(0.5));
    }

    #[test]
    fn every_window_that_counts_begins_a_pass() {
        // Windows of three tokens, two in a pass, whose second one is the more probable.
        let log_ps = |count: usize| work(&(0..count).map(|window| (window % 2) as f64 - 1.0).collect::<Vec<_>>());
        let mut texts = [log_ps(6), log_ps(12)];
        let three = WindowShape { prefix: 2, suffix: 1, stride: 1, ..WindowShape::default() };
        let known = ControlWorks::compare(&mut texts, &[log_ps(9)], three, 2);
        // Four apart and not three: the windows 0 and 4 of six.
        assert_eq!(known.map(|known| known.windows_per_work), Some(2));
        assert_eq!(texts.map(|text| text.p_value), [Some(1.0), Some(1.0)]);
    }

    #[test]
    fn without_windows_nothing_is_compared() {
        assert_eq!(ControlWorks::compare(&mut [work(&[])], &[work(&[-1.0])], shape(1), 1), None);
        assert_eq!(ControlWorks::compare(&mut [work(&[-1.0])], &[work(&[]), work(&[])], shape(1), 1), None);
        assert_eq!(ControlWorks::compare(&mut [work(&[-1.0])], &[], shape(1), 1), None);
    }
}
