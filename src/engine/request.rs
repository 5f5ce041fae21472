//! Requests to a model: passes, each with a place for its answer.
//!
//! A pass is made once, by the code that plans the request, and shared from then on: it waits in the queue, is a part of a batch,
//! and the device writes the answer into it. Nothing has to be put back into an order afterwards.

use crate::access::Principal;
use lm::models::masked::{Filled, MaskedPosition};
use lm::models::{Continuation, GreedyPrompt};
use mia::TokenStats;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use strum::{EnumCount, IntoStaticStr, VariantArray};

/// Urgency of a request, the more urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, EnumCount, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum Class {
    /// A client waits for it.
    Interactive,
    /// An audit or a command line feeds it.
    Batch,
}

#[derive(Debug, Clone, Default)]
pub(super) struct PerClass<T>([T; Class::COUNT]);

impl<T> PerClass<T> {
    pub(super) fn new(mut value: impl FnMut(Class) -> T) -> Self {
        Self(std::array::from_fn(|index| value(Class::VARIANTS[index])))
    }

    pub(super) fn get(&self, class: Class) -> &T {
        &self.0[class as usize]
    }

    pub(super) fn get_mut(&mut self, class: Class) -> &mut T {
        &mut self.0[class as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter()
    }
}

/// The statistics of one sequence: `len - 1` entries for `len` ids, none for a sequence without ids.
pub type Stats = Arc<[TokenStats]>;

/// One sequence to run through a model, and its answer once there is one.
#[derive(Debug, PartialEq)]
pub struct Pass {
    pub(super) input: PassInput,
    begun: OnceLock<Instant>,
    answer: OnceLock<Answer>,
}

/// Input that runs as one sequence of a batch.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum PassInput {
    /// The statistics of its tokens are wanted, of a causal model.
    Score(Arc<[u32]>),
    /// A continuation is wanted, of a causal model: as much of it as one pass gives.
    Continue(GreedyPrompt),
    /// The candidates for its masked position are wanted, of a masked model.
    Fill(MaskedPosition),
}

/// Answer of a pass, of the same kind as its input.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Stats(Stats),
    Continued(Continuation),
    Filled(Filled),
}

/// Passes for one model. They are admitted, answered and counted together.
#[derive(Debug)]
pub struct Request {
    pub model: String,
    /// The [identity](crate::pool::Model::identity) of the model that the token ids were made for.
    pub identity: Arc<str>,
    /// The queue is fair between principals.
    pub(super) principal: Principal,
    /// The key of statistics in the caches, beside the ids: the identity, and the principal where it shares no cache.
    pub(super) cache_key: Arc<str>,
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
        let (principal, cache_key) = (Principal::default(), Arc::clone(&identity));
        Self { model: model.into(), identity, principal, cache_key, class, deadline, passes, by_sequence, recalled: 0 }
    }

    /// The same for a principal whose statistics have this key in the caches.
    #[must_use]
    pub fn asked_by(self, principal: &Principal, cache_key: Arc<str>) -> Self {
        Self { principal: principal.clone(), cache_key, ..self }
    }

    /// Adds a pass, and returns the one that is to be waited for: equal sequences to score are one pass. Continuations and masked
    /// positions are neither cached nor merged: the caller keeps what it makes of them.
    pub fn add(&mut self, pass: Arc<Pass>) -> Arc<Pass> {
        if let PassInput::Score(ids) = &pass.input {
            if let Some(known) = self.by_sequence.get(ids) {
                return Arc::clone(known);
            }
            self.by_sequence.insert(Arc::clone(ids), Arc::clone(&pass));
        }
        self.passes.push(Arc::clone(&pass));
        pass
    }

    /// The passes that have no answer yet.
    pub(super) fn open_passes(&self) -> impl Iterator<Item = &Arc<Pass>> {
        self.passes.iter().filter(|pass| !pass.is_answered())
    }
}

impl Pass {
    /// A sequence to score: token ids, with whatever the model wants before the first. One with fewer than two ids has no
    /// statistics, for nothing comes before the only id, and is answered at once.
    pub fn score(ids: Arc<[u32]>) -> Arc<Self> {
        let answer = if ids.len() < 2 { OnceLock::from(Answer::Stats(Stats::default())) } else { OnceLock::new() };
        Arc::new(Self { input: PassInput::Score(ids), begun: OnceLock::new(), answer })
    }

    /// A masked position to fill, in a copy of its sequence.
    pub fn fill(position: MaskedPosition) -> Arc<Self> {
        Self::unanswered(PassInput::Fill(position))
    }

    /// A sequence to continue greedily.
    pub fn continue_greedily(prompt: GreedyPrompt) -> Arc<Self> {
        Self::unanswered(PassInput::Continue(prompt))
    }

    fn unanswered(input: PassInput) -> Arc<Self> {
        Arc::new(Self { input, begun: OnceLock::new(), answer: OnceLock::new() })
    }

    /// Returns the statistics of its tokens; `None` if it has no answer, or is no sequence to score.
    pub fn stats(&self) -> Option<&Stats> {
        match self.answer.get()? {
            Answer::Stats(stats) => Some(stats),
            Answer::Continued(_) | Answer::Filled(_) => None,
        }
    }

    /// Returns the candidates for its masked position; `None` if it has no answer, or has no such position.
    pub fn filled(&self) -> Option<&Filled> {
        match self.answer.get()? {
            Answer::Filled(filled) => Some(filled),
            Answer::Stats(_) | Answer::Continued(_) => None,
        }
    }

    /// Returns what the model wrote; `None` if it has no answer, or is no sequence to continue.
    pub fn continuation(&self) -> Option<&Continuation> {
        match self.answer.get()? {
            Answer::Continued(continuation) => Some(continuation),
            Answer::Stats(_) | Answer::Filled(_) => None,
        }
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answer.get().is_some()
    }

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
            Self::Continue(prompt) => prompt.ids.len() + prompt.draft.len(),
            Self::Fill(position) => position.ids.len(),
        }
    }

    pub(super) fn is_masked(&self) -> bool {
        matches!(self, Self::Fill(_))
    }

    pub(super) fn sequence(&self) -> Option<&Arc<[u32]>> {
        match self {
            Self::Score(ids) => Some(ids),
            Self::Continue(_) | Self::Fill(_) => None,
        }
    }

    pub(super) fn prompt(&self) -> Option<&GreedyPrompt> {
        match self {
            Self::Continue(prompt) => Some(prompt),
            Self::Score(_) | Self::Fill(_) => None,
        }
    }

    pub(super) fn masked_position(&self) -> Option<&MaskedPosition> {
        match self {
            Self::Fill(position) => Some(position),
            Self::Score(_) | Self::Continue(_) => None,
        }
    }
}
