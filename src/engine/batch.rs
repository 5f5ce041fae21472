//! Which sequences run together. Pure: plain data in, positions out; the device threads feed it and run what it picks.
//!
//! The rules:
//!
//! - A batch is led by the oldest waiting sequence of its class that the device may run, and holds one model and one
//!   class: a client's text never pays for the forward pass of an audit.
//! - Later sequences of the same model fill what the leader leaves of the token budget. At most [`LOOK_AHEAD`]
//!   sequences are passed over in search of them, so that forming a batch costs the batch and a constant, however
//!   long the queue is. A leader above the budget runs alone.
//! - Interactive leads while any waits, but once it has run [`PATIENCE`] budgets of tokens on a device past waiting batch
//!   work, batch work leads there once. So neither class starves: under full load batch work gets at least one forward
//!   pass in about `PATIENCE` + 1, and an interactive sequence waits for at most one batch of the other class at a time.
//!
//! Lengths matter for the budget alone: a batch is not made of sequences of like length. Kernels of our own pad nothing, so
//! they would gain nothing. What runs in candle's operations sorts its batch into groups between powers of two and pads each
//! on its own; a batch of such a group would be padded as much, only narrower classes would save more, and where it is the
//! attention alone that pads, the waste is a part of a few percent of the pass. For that, texts would wait for their like.

use std::collections::VecDeque;

use super::Class;

/// How many sequences may be passed over while a batch is filled.
pub(super) const LOOK_AHEAD: usize = 256;

/// How many batches' worth of interactive tokens may overtake waiting batch work.
pub(super) const PATIENCE: usize = 4;

/// Positions, ascending, of the sequences that run next, out of those of one model and class, given by their lengths;
/// the first is always 0. Empty only where nothing waits.
pub(super) fn form(lengths: impl IntoIterator<Item = usize>, budget: usize) -> Vec<usize> {
    let mut lengths = lengths.into_iter().enumerate();
    let Some((_, leader)) = lengths.next() else {
        return Vec::new();
    };
    let mut picked = vec![0];
    let mut room = budget.saturating_sub(leader);
    let mut passed_over = 0;
    for (position, tokens) in lengths {
        if room == 0 || passed_over == LOOK_AHEAD {
            break;
        }
        if tokens <= room {
            room -= tokens;
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

/// Whose turn it is on one device. Its patience is in budgets of the batch that ran last.
#[derive(Debug)]
pub(super) struct Turn {
    overtaken: usize,
    patience: usize,
}

impl Turn {
    /// The turns of a device whose batches have up to `max_batch_tokens`.
    pub(super) fn new(max_batch_tokens: usize) -> Self {
        Self { overtaken: 0, patience: max_batch_tokens.saturating_mul(PATIENCE) }
    }
}

/// Who leads the next batch of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lead {
    /// The index of its model.
    pub(super) model: usize,
    class: Class,
    batch_waits: bool,
}

#[derive(Debug)]
struct Waiting<T> {
    arrival: u64,
    entry: T,
}

/// The sequences that wait, by class and model, each in order of arrival.
#[derive(Debug)]
pub(super) struct Queue<T> {
    waiting: [Vec<VecDeque<Waiting<T>>>; Class::ALL.len()],
    arrivals: u64,
    tokens: fn(&T) -> usize,
}

impl<T> Queue<T> {
    /// An empty queue for so many models; `tokens` is the length of an entry.
    pub(super) fn new(models: usize, tokens: fn(&T) -> usize) -> Self {
        let waiting = Class::ALL.map(|_| (0..models).map(|_| VecDeque::new()).collect());
        Self { waiting, arrivals: 0, tokens }
    }

    pub(super) fn push(&mut self, class: Class, model: usize, entry: T) {
        self.waiting[class.index()][model].push_back(Waiting { arrival: self.arrivals, entry });
        self.arrivals += 1;
    }

    /// Whether anything waits for the model.
    pub(super) fn holds(&self, model: usize) -> bool {
        self.waiting.iter().any(|models| !models[model].is_empty())
    }

    /// Who leads the next batch of a device that may run the models for which `eligible` holds; none where nothing
    /// waits for them.
    pub(super) fn lead(&self, turn: &Turn, eligible: impl Fn(usize) -> bool) -> Option<Lead> {
        let oldest = |class: Class| {
            let fronts = self.waiting[class.index()].iter().map(|waiting| waiting.front().map(|front| front.arrival));
            let fronts = fronts.enumerate().filter_map(|(model, arrival)| Some((arrival?, model)));
            fronts.filter(|(_, model)| eligible(*model)).min().map(|(_, model)| model)
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
    pub(super) fn take(&mut self, lead: Lead, turn: &mut Turn, budget: usize) -> Vec<T> {
        let waiting = &mut self.waiting[lead.class.index()][lead.model];
        let picked = form(waiting.iter().map(|waiting| (self.tokens)(&waiting.entry)), budget);
        let taken = take(waiting, &picked);
        turn.patience = budget.saturating_mul(PATIENCE);
        turn.overtaken = if lead.class == Class::Interactive && lead.batch_waits {
            taken.iter().map(self.tokens).fold(turn.overtaken, usize::saturating_add)
        } else {
            0
        };
        taken
    }

    /// Takes out every entry for which `wanted` holds; the others keep their order.
    pub(super) fn extract(&mut self, mut wanted: impl FnMut(&T) -> bool) -> Vec<T> {
        let mut extracted = Vec::new();
        for waiting in self.waiting.iter_mut().flatten() {
            // In the common case nothing is wanted, and nothing moves.
            if waiting.iter().any(|waiting| wanted(&waiting.entry)) {
                for candidate in std::mem::take(waiting) {
                    if wanted(&candidate.entry) {
                        extracted.push(candidate.entry);
                    } else {
                        waiting.push_back(candidate);
                    }
                }
            }
        }
        extracted
    }

    /// Takes out everything that waits for the model.
    pub(super) fn extract_model(&mut self, model: usize) -> Vec<T> {
        let queues = self.waiting.iter_mut().map(|models| std::mem::take(&mut models[model]));
        queues.flatten().map(|waiting| waiting.entry).collect()
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
