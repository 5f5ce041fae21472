//! The forward passes of a request: gathered from all of its texts, run model by model, and put together again.

use super::windows::windows;
use crate::engine::Stats;
use std::sync::Arc;

/// One sequence for a model, and how much of its answer is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Index of the model among those of the request.
    pub model: usize,
    pub ids: Arc<[u32]>,
    /// Statistics at the front that are not wanted.
    pub skip: usize,
}

/// The passes whose wanted statistics, one after the other, are those of one sequence.
pub type Sequence = Vec<Pass>;

/// The sequence of these ids, in as many passes as the model's longest text asks for.
pub fn sequence(model: usize, ids: &Arc<[u32]>, longest: usize) -> Sequence {
    if ids.len() <= longest {
        return vec![Pass { model, ids: Arc::clone(ids), skip: 0 }];
    }
    let pass = |window: super::windows::Window| Pass { model, ids: ids[window.ids].into(), skip: window.known };
    windows(ids.len(), longest).into_iter().map(pass).collect()
}

/// What has to run, by model.
#[derive(Debug, Default)]
pub struct Batch {
    /// For each model of the request, its sequences.
    pub sequences: Vec<Vec<Arc<[u32]>>>,
}

/// Where the answer to a pass will be: the model, the index among its sequences, and what to skip.
pub type Slot = (usize, usize, usize);

impl Batch {
    /// For so many models.
    pub fn new(models: usize) -> Self {
        Self { sequences: vec![Vec::new(); models] }
    }

    /// Takes in a sequence; gives where its statistics will be.
    pub fn add(&mut self, sequence: Sequence) -> Vec<Slot> {
        let slot = |Pass { model, ids, skip }: Pass| {
            self.sequences[model].push(ids);
            (model, self.sequences[model].len() - 1, skip)
        };
        sequence.into_iter().map(slot).collect()
    }
}

/// The statistics of one sequence from the answers of all models.
pub fn join(slots: &[Slot], answers: &[Vec<Stats>]) -> Stats {
    let answer =
        |&(model, index, skip): &Slot| -> Option<(&Stats, usize)> { Some((answers.get(model)?.get(index)?, skip)) };
    match slots {
        [slot] if slot.2 == 0 => answer(slot).map(|(stats, _)| Arc::clone(stats)).unwrap_or_default(),
        slots => slots.iter().filter_map(answer).flat_map(|(stats, skip)| stats.iter().skip(skip).copied()).collect(),
    }
}
