//! Where the windows of a text are, in tokens.

use super::request::WindowShape;
use std::ops::Range;

impl WindowShape {
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.prefix.saturating_add(self.suffix)
    }

    /// Returns the number of windows that fit into `tokens` tokens: as many as end within them.
    #[must_use]
    pub fn count(&self, tokens: usize) -> usize {
        tokens.checked_sub(self.tokens()).map_or(0, |room| room / self.stride.max(1) + 1)
    }

    /// The windows over these tokens, each a stride after the one before.
    pub fn windows(&self, tokens: Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (count, length, stride) = (self.count(tokens.len()), self.tokens(), self.stride);
        (0..count).map(move |window| tokens.start + window * stride).map(move |start| start..start + length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_move_by_the_stride_and_end_within_the_text() {
        let shape = WindowShape { prefix: 3, suffix: 2, stride: 4 };
        let windows = |tokens| shape.windows(tokens).map(|window| (window.start, window.end)).collect::<Vec<_>>();
        assert!(windows(0..4).is_empty());
        assert_eq!(windows(0..5), [(0, 5)]);
        assert_eq!(windows(0..8), [(0, 5)]);
        assert_eq!(windows(0..9), [(0, 5), (4, 9)]);
        assert_eq!(windows(1..14), [(1, 6), (5, 10), (9, 14)]);
        assert_eq!(shape.count(13), 3);
        assert_eq!(WindowShape { prefix: usize::MAX, suffix: 2, stride: 1 }.count(100), 0);
    }

    #[test]
    fn a_window_of_the_default_shape_begins_every_ten_tokens() {
        assert_eq!(WindowShape::default(), WindowShape { prefix: 50, suffix: 50, stride: 10 });
        assert_eq!([99, 100, 109, 110, 1_000].map(|tokens| WindowShape::default().count(tokens)), [0, 1, 1, 2, 91]);
    }
}
