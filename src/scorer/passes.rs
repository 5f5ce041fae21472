//! The forward passes of a text: planned on the workers, then added to the requests of their models, and read when these are
//! answered.

use super::error::ScorerError;
use super::windows::windows;
use crate::engine::{Pass, Request, Stats};
use std::sync::Arc;

/// One sequence to run through a model, and how much of its answer is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPass {
    /// Index of the model among those of the request.
    pub model: usize,
    pub ids: Arc<[u32]>,
    /// Statistics at the front that are not wanted.
    pub skip: usize,
}

/// The passes whose wanted statistics, one after the other, are those of one sequence.
pub type Sequence = Vec<PlannedPass>;

/// The sequence of these ids, in as many passes as the model's longest text asks for.
pub fn sequence(model: usize, ids: &Arc<[u32]>, longest: usize) -> Sequence {
    if ids.len() <= longest {
        return vec![PlannedPass { model, ids: Arc::clone(ids), skip: 0 }];
    }
    let pass = |window: super::windows::Window| PlannedPass { model, ids: ids[window.ids].into(), skip: window.known };
    windows(ids.len(), longest).into_iter().map(pass).collect()
}

/// A sequence whose passes are part of requests: each with the statistics at its front that are not wanted.
pub struct RequestedSequence(Vec<(Arc<Pass>, usize)>);

impl RequestedSequence {
    /// Adds the passes of a sequence to the requests of their models.
    pub fn new(sequence: Sequence, requests: &mut [Request]) -> Self {
        let requested = |PlannedPass { model, ids, skip }: PlannedPass| (requests[model].score(&ids), skip);
        Self(sequence.into_iter().map(requested).collect())
    }

    /// Returns the number of passes it takes.
    pub fn passes(&self) -> usize {
        self.0.len()
    }

    /// The statistics, once the requests are answered. Of a sequence without passes there are none.
    ///
    /// # Errors
    /// [`ScorerError::Internal`] where a pass has no answer.
    pub fn stats(&self) -> Result<Stats, ScorerError> {
        let missing = || ScorerError::Internal("a pass of an answered request has no answer".into());
        if let [(pass, 0)] = self.0.as_slice() {
            return pass.stats().cloned().ok_or_else(missing);
        }
        let mut joined = Vec::new();
        for (pass, skip) in &self.0 {
            joined.extend(pass.stats().ok_or_else(missing)?.iter().skip(*skip).copied());
        }
        Ok(joined.into())
    }
}
