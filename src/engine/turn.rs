//! Whose turn it is on one device where work of both classes waits; the rules are those of [`queue`](super::queue).

use super::request::Class;
use std::sync::Arc;

/// Number of batches' worth of tokens of one class that may overtake waiting work of the other.
pub(super) const PATIENCE: usize = 4;

/// The part of a budget that a batch counts for at least, one in this many.
const LEAST_SHARE: usize = 4;

/// Tokens of each class that have run past waiting work of the other.
#[derive(Debug)]
pub(super) struct Turn {
    /// Interactive tokens that have run past waiting batch work since batch work last led.
    pub(super) overtaken: usize,
    /// Tokens of batch work that have run past bulk texts since these last led.
    pub(super) batch_run: usize,
    /// Token budget of the batch that ran last.
    pub(super) budget: usize,
}

/// Leader of the next batch of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lead {
    pub(super) model: Arc<str>,
    pub(super) class: Class,
    pub(super) batch_waits: bool,
    /// True if all of the interactive work that waits is held back behind the batch work.
    pub(super) texts_held_back: bool,
    /// For a batch of texts that are not held back: the principal of the batch work that others' bulk texts are held back behind.
    pub(super) held_back_behind: Option<Arc<str>>,
}

/// The class that leads while work of both waits, until some tokens of it have run past the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Precedence {
    Interactive(usize),
    /// Batch work that has credit left, past the bulk texts of others.
    Batch(usize),
}

impl Turn {
    /// The turns of a device whose batches have up to `max_batch_tokens`.
    pub(super) fn new(max_batch_tokens: usize) -> Self {
        Self { overtaken: 0, batch_run: 0, budget: max_batch_tokens }
    }

    /// Returns the tokens of `number` budgets less half a budget, since a batch whose next entry does not fit counts as a whole one.
    pub(super) fn budgets(&self, number: usize) -> usize {
        self.budget.saturating_mul(number) - self.budget / 2
    }

    /// Returns the class that leads the next batch where work of both waits.
    pub(super) fn leader(&self, precedence: &Precedence) -> Class {
        let batch_leads = match precedence {
            Precedence::Interactive(tokens) => self.overtaken >= *tokens,
            Precedence::Batch(tokens) => self.batch_run < *tokens,
        };
        if batch_leads { Class::Batch } else { Class::Interactive }
    }

    /// Notes a batch of `tokens` tokens that was taken under a budget.
    pub(super) fn note(&mut self, lead: &Lead, tokens: usize, budget: usize) {
        let tokens = tokens.max(budget / LEAST_SHARE);
        self.budget = budget;
        match lead.class {
            Class::Interactive if lead.batch_waits => self.overtaken = self.overtaken.saturating_add(tokens),
            _ => self.overtaken = 0,
        }
        match lead.class {
            Class::Batch if lead.texts_held_back => self.batch_run = self.batch_run.saturating_add(tokens),
            Class::Interactive if !lead.texts_held_back => (),
            _ => self.batch_run = 0,
        }
    }
}
