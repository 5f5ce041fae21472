//! Windows of a text and the passes that score them.
//!
//! A window is a prefix and a suffix. Windows that begin within the prefix of another share its pass: their suffixes are scored
//! after their own prefix and the tokens that the pass has before it, fewer than `prefix`.

use mia::methods::Fault;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use strum::{EnumString, VariantNames};
use utoipa::ToSchema;

/// The windows of a text, in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WindowShape {
    /// Tokens of a window that the model is given.
    pub prefix: usize,
    /// Tokens of the continuation.
    pub suffix: usize,
    /// Tokens from the start of a window to that of the next.
    pub stride: usize,
    pub passes: WindowPasses,
}

/// Forward passes of overlapping windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, EnumString, VariantNames, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum WindowPasses {
    /// Windows that begin within the prefix of another share its pass, and are given fewer than twice `prefix` tokens.
    #[default]
    Shared,
    /// Each window is a pass of its own, and is given exactly `prefix` tokens.
    Separate,
}

impl Default for WindowShape {
    fn default() -> Self {
        Self { prefix: 50, suffix: 50, stride: 10, passes: WindowPasses::Shared }
    }
}

impl WindowShape {
    /// Returns the faults of its numbers, with pointers to them.
    #[must_use]
    pub fn faults(&self) -> Vec<Fault> {
        let numbers = [("/prefix", self.prefix), ("/suffix", self.suffix), ("/stride", self.stride)];
        let zeros = numbers.into_iter().filter(|(_, number)| *number == 0);
        zeros.map(|(pointer, _)| Fault::new(pointer.to_owned(), "0 tokens, expected at least 1".to_owned())).collect()
    }
}

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
}

/// Forward passes that score the windows of a job; continuations take passes of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PassCost {
    /// Maximum number of windows of a pass.
    pub windows_per_pass: usize,
    /// Passes of all texts, including the control's.
    pub passes: usize,
    /// Tokens of these passes, including those that the tokenizer puts before a text.
    pub tokens: usize,
    /// These tokens for each token of the texts: 1 is a single pass over them.
    pub passes_over_texts: f64,
}

/// Layout of the windows of a text in passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassLayout {
    pub windows: WindowShape,
    /// Maximum number of windows of a pass, at least 1.
    pub windows_per_pass: usize,
    /// Tokens that the tokenizer puts before a text.
    pub specials: usize,
}

impl PassLayout {
    /// Puts as many windows into a pass as begin within the prefix of its first, and as a model takes that reads `longest` tokens.
    #[must_use]
    pub fn new(windows: WindowShape, specials: usize, longest: usize) -> Self {
        let WindowShape { prefix, stride, passes, .. } = windows;
        let room = longest.saturating_sub(windows.tokens().saturating_add(specials));
        let windows_per_pass = match passes {
            WindowPasses::Shared => prefix.div_ceil(stride.max(1)).min(room / stride.max(1) + 1).max(1),
            WindowPasses::Separate => 1,
        };
        Self { windows, windows_per_pass, specials }
    }

    /// The passes over these tokens, each with the tokens that it runs, without special ones, and the number of its windows.
    pub fn passes(self, tokens: Range<usize>) -> impl Iterator<Item = (Range<usize>, usize)> + use<> {
        let (count, per_pass) = (self.windows.count(tokens.len()), self.windows_per_pass);
        (0..count).step_by(per_pass).map(move |first| {
            let windows = per_pass.min(count - first);
            let start = tokens.start + first * self.windows.stride;
            (start..start + self.tokens(windows), windows)
        })
    }

    /// Adds the passes of a text of so many tokens.
    pub fn add_to(self, cost: &mut PassCost, tokens: usize) {
        for (pass, _) in self.passes(0..tokens) {
            cost.passes += 1;
            cost.tokens = cost.tokens.saturating_add(pass.len() + self.specials);
        }
    }

    /// Tokens of a pass that has this number of windows, without special ones.
    fn tokens(self, windows: usize) -> usize {
        self.windows.tokens() + windows.saturating_sub(1) * self.windows.stride
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(prefix: usize, suffix: usize, stride: usize) -> WindowShape {
        WindowShape { prefix, suffix, stride, passes: WindowPasses::Shared }
    }

    #[test]
    fn windows_that_begin_within_a_prefix_share_its_pass() {
        let passes = |layout: PassLayout, tokens| layout.passes(tokens).collect::<Vec<_>>();
        let layout = PassLayout::new(shape(6, 4, 2), 1, 100);
        assert_eq!(layout.windows_per_pass, 3);
        // Windows begin at 0, 2, 4, 6 and 8 of 18 tokens.
        assert_eq!(passes(layout, 0..18), [(0..14, 3), (6..18, 2)]);
        assert_eq!(passes(layout, 5..23), [(5..19, 3), (11..23, 2)]);
        assert_eq!(passes(layout, 0..9), []);
        let separate = WindowShape { passes: WindowPasses::Separate, ..shape(6, 4, 2) };
        assert_eq!(passes(PassLayout::new(separate, 1, 100), 0..12), [(0..10, 1), (2..12, 1)]);
    }

    #[test]
    fn a_pass_fits_the_model() {
        let windows = |longest| PassLayout::new(shape(50, 50, 10), 1, longest).windows_per_pass;
        // One window takes 101 tokens, each further one 10.
        assert_eq!([90, 101, 110, 111, 121, 141, 1_000].map(windows), [1, 1, 1, 2, 3, 5, 5]);
        let far_apart = |stride| PassLayout::new(shape(50, 50, stride), 0, 1_000).windows_per_pass;
        assert_eq!([24, 25, 26, 49, 50, 51, 200].map(far_apart), [3, 2, 2, 2, 1, 1, 1]);
    }

    #[test]
    fn the_default_windows_run_a_novel_less_than_three_times() {
        let layout = PassLayout::new(WindowShape::default(), 1, 2_048);
        let mut cost = PassCost::default();
        layout.add_to(&mut cost, 130_000);
        // 12,991 windows, five in a pass of 140 tokens and a special one.
        assert_eq!((cost.passes, cost.tokens), (2_599, 2_598 * 141 + 101));
        assert!(cost.tokens < 3 * 130_000);
    }

    #[test]
    fn a_window_has_tokens_and_moves() {
        let shape = |json: &str| serde_json::from_str::<WindowShape>(json).unwrap();
        assert_eq!(shape("{}"), WindowShape::default());
        assert!(shape("{}").faults().is_empty());
        let faults = shape(r#"{"prefix": 0, "suffix": 0, "stride": 0}"#).faults();
        let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
        assert_eq!(pointers, ["/prefix", "/suffix", "/stride"]);
        assert!(serde_json::from_str::<WindowShape>(r#"{"step": 1}"#).is_err());
        assert_eq!(shape(r#"{"passes": "separate"}"#).passes, WindowPasses::Separate);
    }

    #[test]
    fn a_window_of_the_default_shape_begins_every_ten_tokens() {
        assert_eq!([99, 100, 109, 110, 1_000].map(|tokens| WindowShape::default().count(tokens)), [0, 1, 1, 2, 91]);
        assert_eq!(WindowShape { prefix: usize::MAX, ..WindowShape::default() }.count(100), 0);
    }

    proptest! {
        #[test]
        fn every_window_is_in_one_pass(
            prefix in 1usize..40, suffix in 1usize..40, stride in 1usize..50, tokens in 0usize..400, longest in 80usize..200,
        ) {
            let windows = shape(prefix, suffix, stride);
            let layout = PassLayout::new(windows, 1, longest);
            let mut starts = Vec::new();
            for (pass, count) in layout.passes(0..tokens) {
                prop_assert!(count <= layout.windows_per_pass && pass.end <= tokens && pass.len() < longest);
                prop_assert_eq!(pass.len(), prefix + suffix + (count - 1) * stride);
                starts.extend((0..count).map(|window| pass.start + window * stride));
            }
            let expected: Vec<usize> = (0..windows.count(tokens)).map(|window| window * stride).collect();
            prop_assert_eq!(starts, expected);
        }
    }
}
