//! Which sequences run together. Pure: plain data in, positions out; the device thread feeds it and runs what it
//! picks.
//!
//! The rules:
//!
//! - A batch is led by the oldest waiting sequence of its class and holds one model and one class: a client's text
//!   never pays for the forward pass of an audit.
//! - Later sequences of the same model fill what the leader leaves of the token budget. At most [`LOOK_AHEAD`]
//!   sequences are passed over in search of them, so that forming a batch costs the batch and a constant, however
//!   long the queue is. A leader above the budget runs alone.
//! - Interactive leads while any waits, but once it has run [`PATIENCE`] budgets of tokens past waiting batch work,
//!   batch work leads once. So neither class starves: under full load batch work gets at least one forward pass in
//!   about `PATIENCE` + 1, and an interactive sequence waits for at most one batch of the other class at a time.

use std::collections::VecDeque;

use super::Class;

/// How many sequences may be passed over while a batch is filled.
pub(super) const LOOK_AHEAD: usize = 256;

/// How many batches' worth of interactive tokens may overtake waiting batch work.
pub(super) const PATIENCE: usize = 4;

/// What batch formation needs to know of a waiting sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    /// Index of its model.
    pub(super) model: usize,
    /// Its length.
    pub(super) tokens: usize,
}

/// Positions, ascending, of the sequences that run next; the first is always 0. Empty only where nothing waits.
///
/// `budget` gives the token budget of a model.
pub(super) fn form(waiting: impl IntoIterator<Item = Head>, budget: impl Fn(usize) -> usize) -> Vec<usize> {
    let mut waiting = waiting.into_iter().enumerate();
    let Some((_, leader)) = waiting.next() else {
        return Vec::new();
    };
    let mut picked = vec![0];
    let mut room = budget(leader.model).saturating_sub(leader.tokens);
    let mut passed_over = 0;
    for (position, head) in waiting {
        if room == 0 || passed_over == LOOK_AHEAD {
            break;
        }
        if head.model == leader.model && head.tokens <= room {
            room -= head.tokens;
            picked.push(position);
        } else {
            passed_over += 1;
        }
    }
    picked
}

/// The class that leads the next batch. `overtaken` is the number of interactive tokens that have run past waiting
/// batch work since batch work last led, `patience` how many may.
pub(super) fn leader(interactive_waits: bool, batch_waits: bool, overtaken: usize, patience: usize) -> Class {
    if batch_waits && (!interactive_waits || overtaken >= patience) { Class::Batch } else { Class::Interactive }
}

/// The sequences that wait, in order of arrival within their class.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: [VecDeque<T>; Class::ALL.len()],
    head: fn(&T) -> Head,
    overtaken: usize,
    patience: usize,
}

impl<T> Queue<T> {
    /// An empty queue for batches of up to `max_batch_tokens`; `head` describes an entry.
    pub(super) fn new(max_batch_tokens: usize, head: fn(&T) -> Head) -> Self {
        Self { waiting: Default::default(), head, overtaken: 0, patience: max_batch_tokens.saturating_mul(PATIENCE) }
    }

    pub(super) fn push(&mut self, class: Class, entry: T) {
        self.waiting[class.index()].push_back(entry);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.iter().all(VecDeque::is_empty)
    }

    /// Takes the next batch out of the queue, oldest first; empty only where the queue is.
    pub(super) fn next_batch(&mut self, budget: impl Fn(usize) -> usize) -> Vec<T> {
        let [interactive, batch] = &self.waiting;
        let batch_waits = !batch.is_empty();
        let class = leader(!interactive.is_empty(), batch_waits, self.overtaken, self.patience);
        let waiting = &mut self.waiting[class.index()];
        let picked = form(waiting.iter().map(self.head), budget);
        let taken = take(waiting, &picked);
        self.overtaken = if class == Class::Interactive && batch_waits {
            let tokens: usize = taken.iter().map(|entry| (self.head)(entry).tokens).sum();
            self.overtaken.saturating_add(tokens)
        } else {
            0
        };
        taken
    }

    /// Takes out every entry for which `wanted` holds; the others keep their order.
    pub(super) fn extract(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut extracted = Vec::new();
        for waiting in &mut self.waiting {
            // In the common case nothing is wanted, and nothing moves.
            if waiting.iter().any(&mut wanted) {
                for entry in std::mem::take(waiting) {
                    if wanted(&entry) {
                        extracted.push(entry);
                    } else {
                        waiting.push_back(entry);
                    }
                }
            }
        }
        extracted
    }
}

/// Takes the entries at the ascending positions `picked`; touches only the part of the queue before the last of them.
fn take<T>(waiting: &mut VecDeque<T>, picked: &[usize]) -> Vec<T> {
    let reach = picked.last().map_or(0, |last| last + 1);
    let mut picked = picked.iter().copied().peekable();
    let mut taken = Vec::with_capacity(picked.len());
    let mut passed_over = Vec::new();
    for (position, entry) in waiting.drain(..reach).enumerate() {
        if picked.next_if_eq(&position).is_some() {
            taken.push(entry);
        } else {
            passed_over.push(entry);
        }
    }
    for entry in passed_over.into_iter().rev() {
        waiting.push_front(entry);
    }
    taken
}

/// Cuts a batch of at least two into two parts of about equal tokens, neither empty, order kept.
pub(super) fn halve<T>(mut batch: Vec<T>, tokens: impl Fn(&T) -> usize) -> (Vec<T>, Vec<T>) {
    let total: usize = batch.iter().map(&tokens).sum();
    let mut before = 0;
    let middle = batch
        .iter()
        .position(|entry| {
            before += tokens(entry);
            before * 2 >= total
        })
        .map_or(1, |position| position + 1)
        .min(batch.len().saturating_sub(1));
    let rest = batch.split_off(middle);
    (batch, rest)
}
