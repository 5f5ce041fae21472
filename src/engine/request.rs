//! Requests to a model: passes, each with a place for its answer.
//!
//! A pass is made once, by whoever makes the request, and shared from then on: it waits in the queue, is a part of a batch,
//! and the device writes the answer into it. Nothing has to be put back into an order afterwards.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use super::caller::Caller;
use super::class::Class;
use lm::models::masked::{Filled, MaskedPosition};
use mia::TokenStats;

/// The statistics of one sequence: `len - 1` entries for `len` ids, none for a sequence without ids.
pub type Stats = Arc<[TokenStats]>;

/// One sequence to run through a model, and its answer once there is one.
#[derive(Debug, PartialEq)]
pub struct Pass {
    input: PassInput,
    /// The key of its statistics in the caches, beside the ids.
    cache_key: Arc<str>,
    /// When its forward pass began.
    begun: OnceLock<Instant>,
    answer: OnceLock<Answer>,
}

/// Input that runs as one sequence of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PassInput {
    /// The statistics of its tokens are wanted, of a causal model.
    Score(Arc<[u32]>),
    /// The candidates for its masked position are wanted, of a masked model.
    Fill(MaskedPosition),
}

/// Answer of a pass, of the same kind as its input.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Stats(Stats),
    Filled(Filled),
}

/// Passes for one model. They are admitted, answered and counted together.
#[derive(Debug)]
pub struct Request {
    /// The model's id.
    pub model: String,
    /// The [identity](crate::pool::Model::identity) of the model that the token ids were made for.
    pub identity: Arc<str>,
    pub(super) caller: Caller,
    /// The key of statistics in the caches, beside the ids: the identity, and the caller where it shares no cache.
    cache_key: Arc<str>,
    /// Urgency of the request.
    pub class: Class,
    /// When its answer is of no use any more.
    pub deadline: Option<Instant>,
    /// The distinct passes.
    pub(super) passes: Vec<Arc<Pass>>,
    /// Those that score, by sequence.
    by_sequence: HashMap<Arc<[u32]>, Arc<Pass>>,
    /// Number of passes answered by the cache on disk; see [`Engine::recall`](super::Engine::recall).
    pub(super) recalled: usize,
}

impl Request {
    pub fn new(model: impl Into<String>, identity: Arc<str>, class: Class, deadline: Option<Instant>) -> Self {
        let (passes, by_sequence) = (Vec::new(), HashMap::new());
        let (caller, cache_key) = (Caller::default(), Arc::clone(&identity));
        Self { model: model.into(), identity, caller, cache_key, class, deadline, passes, by_sequence, recalled: 0 }
    }

    /// The same, asked by somebody; before passes are added.
    #[must_use]
    pub fn asked_by(self, caller: &Caller) -> Self {
        Self { cache_key: caller.cache_key(&self.identity), caller: caller.clone(), ..self }
    }

    /// Adds a sequence to score: token ids, with whatever the model wants before the first. Equal sequences are one pass.
    /// One with fewer than two ids has no statistics, for nothing comes before the only id, and is answered at once.
    pub fn score(&mut self, ids: &Arc<[u32]>) -> Arc<Pass> {
        if let Some(known) = self.by_sequence.get(ids) {
            return Arc::clone(known);
        }
        let pass = self.add(PassInput::Score(Arc::clone(ids)));
        if ids.len() < 2 {
            pass.settle(Answer::Stats(Stats::default()));
        }
        self.by_sequence.insert(Arc::clone(ids), Arc::clone(&pass));
        pass
    }

    /// Adds a masked position to fill. Each is a pass of its own, for it is masked in a copy of the sequence. They are neither
    /// cached nor merged: the caller keeps what it makes of them.
    pub fn fill(&mut self, position: MaskedPosition) -> Arc<Pass> {
        self.add(PassInput::Fill(position))
    }

    fn add(&mut self, input: PassInput) -> Arc<Pass> {
        let pass = Arc::new(Pass {
            input,
            cache_key: Arc::clone(&self.cache_key),
            begun: OnceLock::new(),
            answer: OnceLock::new(),
        });
        self.passes.push(Arc::clone(&pass));
        pass
    }

    /// The passes that have no answer yet.
    pub(super) fn open_passes(&self) -> impl Iterator<Item = &Arc<Pass>> {
        self.passes.iter().filter(|pass| !pass.is_answered())
    }
}

impl Pass {
    /// Returns the statistics of its tokens; `None` if it has no answer, or is no sequence to score.
    pub fn stats(&self) -> Option<&Stats> {
        match self.answer.get()? {
            Answer::Stats(stats) => Some(stats),
            Answer::Filled(_) => None,
        }
    }

    /// Returns the candidates for its masked position; `None` if it has no answer, or has no such position.
    pub fn filled(&self) -> Option<&Filled> {
        match self.answer.get()? {
            Answer::Stats(_) => None,
            Answer::Filled(filled) => Some(filled),
        }
    }

    pub(super) fn input(&self) -> &PassInput {
        &self.input
    }

    /// The key of its statistics in the caches, beside the ids.
    pub(super) fn cache_key(&self) -> &Arc<str> {
        &self.cache_key
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answer.get().is_some()
    }

    /// Returns the time when its forward pass began; `None` if it did not run.
    pub(super) fn begun(&self) -> Option<Instant> {
        self.begun.get().copied()
    }

    /// Notes that its forward pass begins. The first time stays.
    pub(super) fn begin(&self, now: Instant) {
        let _ = self.begun.set(now);
    }

    /// Writes the answer. The first one stays.
    pub(super) fn settle(&self, answer: Answer) {
        let _ = self.answer.set(answer);
    }
}

impl PassInput {
    pub(super) fn tokens(&self) -> usize {
        match self {
            Self::Score(ids) => ids.len(),
            Self::Fill(position) => position.ids.len(),
        }
    }

    pub(super) fn is_masked(&self) -> bool {
        matches!(self, Self::Fill(_))
    }

    pub(super) fn sequence(&self) -> Option<&Arc<[u32]>> {
        match self {
            Self::Score(ids) => Some(ids),
            Self::Fill(_) => None,
        }
    }

    pub(super) fn masked_position(&self) -> Option<&MaskedPosition> {
        match self {
            Self::Score(_) => None,
            Self::Fill(position) => Some(position),
        }
    }
}

impl Answer {
    /// Returns the number of tokens it scores.
    pub(super) fn scored(&self) -> usize {
        match self {
            Self::Stats(stats) => stats.len(),
            Self::Filled(_) => 0,
        }
    }
}
