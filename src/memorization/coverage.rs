//! Coverage of a text by windows that a model is likely to complete.

use super::extraction::ExtractionWindow;

/// Counts the characters in at least one window, prefix or suffix, that counts. The windows begin one after another.
pub fn covered_characters(windows: &[ExtractionWindow]) -> usize {
    let (mut covered, mut reached) = (0, 0);
    for window in windows.iter().filter(|window| window.is_covered()) {
        covered += window.end.saturating_sub(window.start.max(reached));
        reached = reached.max(window.end);
    }
    covered
}

/// The share of a part; none of nothing.
pub fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_in_several_windows_count_once() {
        let window = |start, end, log_p| ExtractionWindow {
            start,
            suffix_start: start,
            end,
            log_p,
            greedy: false,
            tries_for_half: None,
        };
        let (likely, unlikely) = (-1.0, -20.0);
        // 0 to 15 from the first two, 25 to 35 from the fourth; the third does not count, the last lies within the fourth.
        let windows = [
            window(0, 10, likely),
            window(5, 15, likely),
            window(15, 25, unlikely),
            window(25, 35, likely),
            window(26, 30, likely),
        ];
        assert_eq!(covered_characters(&windows), 25);
        assert_eq!(covered_characters(&windows[2..3]), 0);
        assert_eq!(covered_characters(&[]), 0);
    }
}
