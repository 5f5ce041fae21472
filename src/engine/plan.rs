//! What of a request has to run. Pure: tasks and a look-up in, a plan out, before anything is admitted.

use std::collections::HashMap;
use std::sync::Arc;

use super::Stats;
use super::cache::Tier;
use super::task::{Answer, Task};

/// Tasks that must run, each with the index of its answer.
pub(super) type Pending = Vec<(usize, Task)>;

/// A request with its duplicates, cached and trivial sequences taken out.
#[derive(Debug, PartialEq)]
pub(super) struct Plan {
    /// For each task of the request the index of its answer: equal sequences to score share one.
    pub(super) slots: Vec<usize>,
    /// The answers. Those yet to come are empty.
    pub(super) answers: Vec<Answer>,
    /// What must run.
    pub(super) pending: Pending,
    /// How many answers came from the cache in memory.
    pub(super) cached: usize,
    /// How many came from the cache on disk.
    pub(super) recalled: usize,
}

impl Plan {
    /// Plans `tasks` against a cache. Blanks are neither cached nor merged: their caller keeps what it makes of them.
    pub(super) fn new(tasks: &[Task], cached: impl Fn(&Arc<[u32]>) -> Option<(Stats, Tier)>) -> Self {
        let slots = Vec::with_capacity(tasks.len());
        let mut plan = Self { slots, answers: Vec::new(), pending: Vec::new(), cached: 0, recalled: 0 };
        let mut known: HashMap<&[u32], usize> = HashMap::with_capacity(tasks.len());
        for task in tasks {
            let slot = match task {
                Task::Score(ids) => *known.entry(ids).or_insert_with(|| plan.score(ids, &cached)),
                Task::Fill(_) => plan.run(task.clone()),
            };
            plan.slots.push(slot);
        }
        plan
    }

    /// Adds a sequence to score. The index of its answer, as of the others.
    fn score(&mut self, ids: &Arc<[u32]>, cached: impl Fn(&Arc<[u32]>) -> Option<(Stats, Tier)>) -> usize {
        if ids.len() < 2 {
            // Nothing comes before the only id, so nothing is scored.
            return self.answer(Stats::default());
        }
        match cached(ids) {
            Some((stats, tier)) => {
                match tier {
                    Tier::Memory => self.cached += 1,
                    Tier::Disk => self.recalled += 1,
                }
                self.answer(stats)
            }
            None => self.run(Task::Score(Arc::clone(ids))),
        }
    }

    fn run(&mut self, task: Task) -> usize {
        let slot = self.answer(Stats::default());
        self.pending.push((slot, task));
        slot
    }

    fn answer(&mut self, stats: Stats) -> usize {
        self.answers.push(Answer::Stats(stats));
        self.answers.len() - 1
    }
}
