//! What waits for a forward pass, by model and class, each in order of arrival. A model under an adapter is one of its own
//! here, for a batch has one adapter.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::formation::{PATIENCE, Turn, form, leader};
use crate::engine::class::{Class, PerClass};
use crate::pool::base_id;

/// Who leads the next batch of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Lead {
    /// The id of its model.
    pub(in crate::engine) model: Arc<str>,
    pub(in crate::engine) class: Class,
    batch_waits: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    arrival: u64,
    entry: T,
}

/// The entries that wait.
#[derive(Debug)]
pub(in crate::engine) struct Queue<T> {
    /// By model; one for which nothing waits is not there.
    models: HashMap<Arc<str>, PerClass<VecDeque<Waiting<T>>>>,
    arrivals: u64,
    tokens: fn(&T) -> usize,
}

impl<T> Queue<T> {
    /// An empty queue; `tokens` is the length of an entry.
    pub(in crate::engine) fn new(tokens: fn(&T) -> usize) -> Self {
        Self { models: HashMap::new(), arrivals: 0, tokens }
    }

    pub(in crate::engine) fn push(&mut self, class: Class, model: &Arc<str>, entry: T) {
        let waiting = self.models.entry(Arc::clone(model)).or_insert_with(|| PerClass::new(|_| VecDeque::new()));
        waiting.get_mut(class).push_back(Waiting { arrival: self.arrivals, entry });
        self.arrivals += 1;
    }

    /// Who leads the next batch of a device that may run the models for which `eligible` holds; none where nothing
    /// waits for them.
    pub(in crate::engine) fn lead(&self, turn: &Turn, eligible: impl Fn(&str) -> bool) -> Option<Lead> {
        let oldest = |class: Class| {
            let fronts = self.models.iter().filter_map(|(model, waiting)| {
                Some((waiting.get(class).front()?.arrival, model)).filter(|(_, model)| eligible(model))
            });
            fronts.min().map(|(_, model)| Arc::clone(model))
        };
        let (interactive, batch) = (oldest(Class::Interactive), oldest(Class::Batch));
        let batch_waits = batch.is_some();
        let class = leader(interactive.is_some(), batch_waits, turn.overtaken, turn.patience);
        let model = match class {
            Class::Interactive => interactive,
            Class::Batch => batch,
        };
        model.map(|model| Lead { model, class, batch_waits })
    }

    /// Takes the batch that `lead` leads out of the queue, oldest first, and notes whose turn it was.
    pub(in crate::engine) fn take(&mut self, lead: &Lead, turn: &mut Turn, budget: usize) -> Vec<T> {
        let Some(waiting) = self.models.get_mut(&lead.model) else { return Vec::new() };
        let waiting = waiting.get_mut(lead.class);
        let picked = form(waiting.iter().map(|waiting| (self.tokens)(&waiting.entry)), budget);
        let taken = take(waiting, &picked);
        turn.patience = budget.saturating_mul(PATIENCE);
        turn.overtaken = if lead.class == Class::Interactive && lead.batch_waits {
            taken.iter().map(self.tokens).fold(turn.overtaken, usize::saturating_add)
        } else {
            0
        };
        self.tidy(&lead.model);
        taken
    }

    /// Takes out every entry of a model and class for which `wanted` holds; the others keep their order.
    pub(in crate::engine) fn extract(
        &mut self,
        class: Class,
        model: &str,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Vec<T> {
        let Some(waiting) = self.models.get_mut(model) else { return Vec::new() };
        let waiting = waiting.get_mut(class);
        // In the common case nothing is wanted, and nothing moves.
        if !waiting.iter().any(|candidate| wanted(&candidate.entry)) {
            return Vec::new();
        }
        let (extracted, kept): (Vec<_>, Vec<_>) = waiting.drain(..).partition(|candidate| wanted(&candidate.entry));
        waiting.extend(kept);
        self.tidy(model);
        extracted.into_iter().map(|candidate| candidate.entry).collect()
    }

    /// Takes out everything that waits for the model, under whatever adapter.
    pub(in crate::engine) fn extract_model(&mut self, model: &str) -> Vec<T> {
        let removed = self.models.extract_if(|id, _| base_id(id) == base_id(model));
        let mut queues: Vec<_> = removed.map(|(_, waiting)| waiting).collect();
        let entries = queues.iter_mut().flat_map(PerClass::iter_mut).flat_map(std::mem::take);
        entries.map(|waiting| waiting.entry).collect()
    }

    /// Takes out everything.
    pub(in crate::engine) fn clear(&mut self) {
        self.models.clear();
    }

    fn tidy(&mut self, model: &str) {
        if self.models.get(model).is_some_and(|waiting| waiting.iter().all(VecDeque::is_empty)) {
            self.models.remove(model);
        }
    }
}

/// Takes the entries at the ascending positions `picked`; touches only the part of the queue before the last of them.
fn take<T>(waiting: &mut VecDeque<Waiting<T>>, picked: &[usize]) -> Vec<T> {
    let reach = picked.last().map_or(0, |last| last + 1);
    let mut picked = picked.iter().copied().peekable();
    let mut taken = Vec::with_capacity(picked.len());
    let mut passed_over = Vec::new();
    for (position, candidate) in waiting.drain(..reach).enumerate() {
        if picked.next_if_eq(&position).is_some() {
            taken.push(candidate.entry);
        } else {
            passed_over.push(candidate);
        }
    }
    for candidate in passed_over.into_iter().rev() {
        waiting.push_front(candidate);
    }
    taken
}
