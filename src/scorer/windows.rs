//! Reading of a text longer than a model's context: in windows that overlap by half.

use std::ops::Range;

/// One forward pass over a part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    pub ids: Range<usize>,
    /// Number of its statistics, from the first, that an earlier window has with more context.
    pub known: usize,
}

/// The windows over `length` ids, at most `context` in each, each starting half a window after the one before. Together
/// their new statistics are one for every id but the first, in order, each with the most left context that any window
/// gives it. A context of fewer than two ids scores nothing.
pub fn windows(length: usize, context: usize) -> Vec<Window> {
    if length <= context || context < 2 {
        return vec![Window { ids: 0..length.min(context), known: 0 }];
    }
    let step = context / 2;
    let mut windows = vec![Window { ids: 0..context, known: 0 }];
    let (mut start, mut end) = (0, context);
    while end < length {
        start += step;
        let next = length.min(start + context);
        // The statistic at 0 belongs to the id at start + 1.
        windows.push(Window { ids: start..next, known: end - start - 1 });
        end = next;
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_scored_once_with_the_most_context() {
        for context in 2..20 {
            for length in 1..100 {
                let windows = windows(length, context);
                let scored: Vec<usize> =
                    windows.iter().flat_map(|window| window.ids.clone().skip(1 + window.known)).collect();
                assert_eq!(scored, (1..length).collect::<Vec<_>>(), "{length} ids in windows of {context}");
                for (at, window) in windows.iter().enumerate() {
                    assert!(window.ids.len() <= context);
                    assert_eq!(window.ids.start, at * (context / 2));
                    // An earlier window does not hold what this one adds, so no window gives it more context.
                    let first_new = window.ids.start + 1 + window.known;
                    assert!(windows[..at].iter().all(|earlier| earlier.ids.end <= first_new));
                }
            }
        }
    }

    #[test]
    fn a_text_that_fits_is_one_window() {
        assert_eq!(windows(8, 8), [Window { ids: 0..8, known: 0 }]);
        assert_eq!(windows(9, 8), [Window { ids: 0..8, known: 0 }, Window { ids: 4..9, known: 3 }]);
        assert_eq!(windows(0, 8), [Window { ids: 0..0, known: 0 }]);
        assert_eq!(windows(5, 1), [Window { ids: 0..1, known: 0 }]);
    }
}
