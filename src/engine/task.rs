//! What runs as one sequence of a batch, whichever kind of model is asked.

use std::sync::Arc;
use std::time::Instant;

use super::cache::Recalled;
use super::{Class, FillWork, Stats, Work};
use crate::models::masked::{Filled, MaskedPosition};

/// One sequence to run, and what is asked of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Task {
    /// The statistics of its tokens, of a causal model.
    Score(Arc<[u32]>),
    /// What could stand in its blank, of a masked model.
    Fill(MaskedPosition),
}

/// What came of a task, of the same kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    Stats(Stats),
    Filled(Filled),
}

/// A request of either kind: what [`Work`] and [`FillWork`] become.
#[derive(Debug)]
pub struct Request {
    pub(super) model: String,
    pub(super) identity: Arc<str>,
    pub(super) tasks: Vec<Task>,
    /// Whether it asks a masked model.
    pub(super) masked: bool,
    pub(super) class: Class,
    pub(super) deadline: Option<Instant>,
    /// What the disk knows of it; see [`Engine::recall`](super::Engine::recall).
    pub(super) recalled: Recalled,
}

impl From<Work> for Request {
    fn from(work: Work) -> Self {
        let Work { model, identity, sequences, class, deadline } = work;
        let tasks = sequences.into_iter().map(Task::Score).collect();
        Self { model, identity, tasks, masked: false, class, deadline, recalled: Recalled::new() }
    }
}

impl From<FillWork> for Request {
    fn from(work: FillWork) -> Self {
        let FillWork { model, identity, blanks, class, deadline } = work;
        let tasks = blanks.into_iter().map(Task::Fill).collect();
        Self { model, identity, tasks, masked: true, class, deadline, recalled: Recalled::new() }
    }
}

impl Task {
    /// Its length.
    pub(super) fn tokens(&self) -> usize {
        match self {
            Self::Score(ids) => ids.len(),
            Self::Fill(blank) => blank.ids.len(),
        }
    }

    /// The sequence to score.
    pub(super) fn sequence(&self) -> Option<&[u32]> {
        match self {
            Self::Score(ids) => Some(ids),
            Self::Fill(_) => None,
        }
    }

    /// The same, to be kept.
    pub(super) fn shared_sequence(&self) -> Option<Arc<[u32]>> {
        match self {
            Self::Score(ids) => Some(Arc::clone(ids)),
            Self::Fill(_) => None,
        }
    }

    /// The blank to fill.
    pub(super) fn blank(&self) -> Option<&MaskedPosition> {
        match self {
            Self::Score(_) => None,
            Self::Fill(blank) => Some(blank),
        }
    }
}

impl Answer {
    /// How many tokens it scores.
    pub(super) fn scored(&self) -> usize {
        match self {
            Self::Stats(stats) => stats.len(),
            Self::Filled(_) => 0,
        }
    }
}
