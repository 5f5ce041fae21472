//! The forward passes of a sequence of ids: planned on the workers, then added to the requests of their models, and read when
//! these are answered. A sequence longer than a model's context is read in windows that overlap by half.

use super::error::ScorerError;
use crate::engine::{Pass, Request, Stats};
use std::ops::Range;
use std::sync::Arc;

/// The passes of one sequence: their wanted statistics, one after the other, are those of the sequence.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    /// Index of the model among those of the request.
    model: usize,
    /// Each pass with the number of statistics at its front that are not wanted.
    passes: Vec<(Arc<Pass>, usize)>,
    /// Indices of the wanted ones among the rest, in order; `None` if all are.
    wanted: Option<Arc<[usize]>>,
}

impl Sequence {
    /// The sequence of these ids, in as many passes as the model's longest text asks for.
    pub fn new(model: usize, ids: &Arc<[u32]>, longest: usize) -> Self {
        if ids.len() <= longest {
            return Self::single(model, Arc::clone(ids), 0);
        }
        let pass = |window: Window| (Pass::score(ids[window.ids].into()), window.known);
        Self { model, passes: windows(ids.len(), longest).into_iter().map(pass).collect(), wanted: None }
    }

    /// One pass whose first `skip` statistics are not wanted.
    pub fn single(model: usize, ids: Arc<[u32]>, skip: usize) -> Self {
        Self { model, passes: vec![(Pass::score(ids), skip)], wanted: None }
    }

    /// The same sequence with only the statistics at some indices wanted, in order.
    pub fn with_wanted(self, wanted: Option<Arc<[usize]>>) -> Self {
        Self { wanted, ..self }
    }

    pub fn add_to(&mut self, requests: &mut [Request]) {
        for (pass, _) in &mut self.passes {
            *pass = requests[self.model].add(Arc::clone(pass));
        }
    }

    pub fn count(&self) -> usize {
        self.passes.len()
    }

    /// The statistics, once the requests are answered. Of a sequence without passes there are none.
    pub fn stats(&self) -> Result<Stats, ScorerError> {
        let missing = || ScorerError::Internal("a pass of an answered request has no answer".into());
        if let ([(pass, 0)], None) = (self.passes.as_slice(), &self.wanted) {
            return pass.stats().cloned().ok_or_else(missing);
        }
        let mut joined = Vec::new();
        for (pass, skip) in &self.passes {
            joined.extend(pass.stats().ok_or_else(missing)?.iter().skip(*skip).copied());
        }
        match &self.wanted {
            None => Ok(joined.into()),
            Some(wanted) => {
                wanted.iter().map(|index| joined.get(*index).copied()).collect::<Option<_>>().ok_or_else(missing)
            }
        }
    }
}

/// One forward pass over a part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    ids: Range<usize>,
    /// Number of its statistics, from the first, that an earlier window has with more context.
    known: usize,
}

/// The windows over `length` ids, at most `context` in each, each starting half a window after the one before. Together
/// their new statistics are one for every id but the first, in order, each with the most left context that any window
/// gives it. A context of fewer than two ids scores nothing.
fn windows(length: usize, context: usize) -> Vec<Window> {
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
