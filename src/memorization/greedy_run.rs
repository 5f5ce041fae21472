//! The longest passage of a text that a model completes token by token.

use serde::{Deserialize, Serialize};
use std::ops::Range;
use utoipa::ToSchema;

/// A passage whose every token is the most probable one after the tokens before it, or as probable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GreedyRun {
    /// Start of the passage, in Unicode code points of the text.
    pub start: usize,
    /// End of the passage, exclusive.
    pub end: usize,
    pub tokens: usize,
    /// The passage itself; absent unless the request has `run_text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// Finds the longest run of greedy tokens among tokens that come in order.
#[derive(Clone, Debug, Default)]
pub struct RunFinder {
    longest: Range<usize>,
    current: Range<usize>,
}

impl RunFinder {
    /// Takes the token at this index of the text. Tokens that are skipped end a run, and those before the last one are ignored.
    pub fn add(&mut self, token: usize, is_greedy: bool) {
        if token < self.current.end {
            return;
        }
        if !is_greedy {
            self.current = token + 1..token + 1;
            return;
        }
        let is_next = token == self.current.end;
        self.current = if is_next { self.current.start } else { token }..token + 1;
        // The first of several that are equally long.
        if self.current.len() > self.longest.len() {
            self.longest = self.current.clone();
        }
    }

    /// The tokens of the longest run; `None` if no token is greedy.
    pub fn longest(&self) -> Option<Range<usize>> {
        (!self.longest.is_empty()).then(|| self.longest.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn longest(tokens: &[(usize, bool)]) -> Option<Range<usize>> {
        let mut runs = RunFinder::default();
        for &(token, is_greedy) in tokens {
            runs.add(token, is_greedy);
        }
        runs.longest()
    }

    #[test]
    fn the_first_longest_run_counts() {
        let run = |flags: &[bool]| longest(&flags.iter().copied().enumerate().collect::<Vec<_>>());
        assert_eq!(run(&[]), None);
        assert_eq!(run(&[false, false]), None);
        assert_eq!(run(&[true]), Some(0..1));
        assert_eq!(run(&[false, true, true, false, true, true, false, true]), Some(1..3));
        assert_eq!(run(&[true, false, true, true, true]), Some(2..5));
    }

    #[test]
    fn a_gap_ends_a_run_and_a_token_counts_once() {
        assert_eq!(longest(&[(3, true), (4, true), (9, true)]), Some(3..5));
        assert_eq!(longest(&[(3, true), (3, false), (4, true), (2, true), (5, true)]), Some(3..6));
        assert_eq!(longest(&[(3, true), (5, true), (6, true), (7, true)]), Some(5..8));
    }
}
