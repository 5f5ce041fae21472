//! What of a request has to run. Pure: sequences and a look-up in, a plan out, before anything is admitted.

use std::collections::HashMap;
use std::sync::Arc;

use super::Stats;

/// Sequences that must run, each with the index of its answer.
pub(super) type Pending = Vec<(usize, Arc<[u32]>)>;

/// A request with its duplicates, cached and trivial sequences taken out.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// For each sequence of the request the index of its answer: equal sequences share one.
    pub(super) slots: Vec<usize>,
    /// The answers. Those yet to come are empty.
    pub(super) answers: Vec<Stats>,
    /// What must run.
    pub(super) pending: Pending,
    /// How many answers came from the cache.
    pub(super) cached: usize,
}

impl Plan {
    /// Plans `sequences` against a cache.
    pub(super) fn new(sequences: &[Arc<[u32]>], cached: impl Fn(&Arc<[u32]>) -> Option<Stats>) -> Self {
        let nothing: Stats = Arc::new([]);
        let mut plan =
            Self { slots: Vec::with_capacity(sequences.len()), answers: Vec::new(), pending: Vec::new(), cached: 0 };
        let mut known: HashMap<&[u32], usize> = HashMap::with_capacity(sequences.len());
        for ids in sequences {
            let slot = *known.entry(ids).or_insert_with(|| {
                let slot = plan.answers.len();
                if ids.len() < 2 {
                    // Nothing comes before the only id, so nothing is scored.
                    plan.answers.push(Arc::clone(&nothing));
                } else if let Some(stats) = cached(ids) {
                    plan.cached += 1;
                    plan.answers.push(stats);
                } else {
                    plan.pending.push((slot, Arc::clone(ids)));
                    plan.answers.push(Arc::clone(&nothing));
                }
                slot
            });
            plan.slots.push(slot);
        }
        plan
    }
}
