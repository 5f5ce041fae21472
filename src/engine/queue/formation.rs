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

use crate::engine::class::Class;

/// Maximum number of sequences passed over while a batch is filled.
pub(in crate::engine) const LOOK_AHEAD: usize = 256;

/// Number of batches' worth of interactive tokens that may overtake waiting batch work.
pub(in crate::engine) const PATIENCE: usize = 4;

/// Positions, ascending, of the sequences that run next, out of those of one model and class, given by their lengths;
/// the first is always 0. Empty only where nothing waits.
pub(in crate::engine) fn form(lengths: impl IntoIterator<Item = usize>, budget: usize) -> Vec<usize> {
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
pub(in crate::engine) fn leader(
    interactive_waits: bool,
    batch_waits: bool,
    overtaken: usize,
    patience: usize,
) -> Class {
    if batch_waits && (!interactive_waits || overtaken >= patience) { Class::Batch } else { Class::Interactive }
}

/// Whose turn it is on one device. Its patience is in budgets of the batch that ran last.
#[derive(Debug)]
pub(in crate::engine) struct Turn {
    /// Interactive tokens that have run past waiting batch work since batch work last led.
    pub(super) overtaken: usize,
    /// Maximum number of them.
    pub(super) patience: usize,
}

impl Turn {
    /// The turns of a device whose batches have up to `max_batch_tokens`.
    pub(in crate::engine) fn new(max_batch_tokens: usize) -> Self {
        Self { overtaken: 0, patience: max_batch_tokens.saturating_mul(PATIENCE) }
    }
}

/// Cuts a batch of at least two into two parts of about equal tokens, neither empty, order kept.
pub(in crate::engine) fn halve<T>(mut batch: Vec<T>, tokens: impl Fn(&T) -> usize) -> (Vec<T>, Vec<T>) {
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
