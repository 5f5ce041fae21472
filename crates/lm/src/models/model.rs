//! Loaded models, as the engine runs them.

use super::batch::BatchStats;
use super::continuation::{Continuation, GreedyPrompt};
use super::error::ModelError;
use super::lora::{Adapter, LoadedAdapter};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

/// Progress of a forward pass through streamed layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerProgress {
    /// Index of the layer that computes.
    pub layer: usize,
    pub layers: usize,
    /// Time that the pass has waited for layers to be read.
    pub waited: Duration,
}

/// Is called by forward passes through streamed layers before each part of their work, which is some 2,048 tokens in one layer. On
/// `Break`, the pass ends with [`ModelError::Cancelled`].
pub type LayerWatch = Box<dyn Fn(LayerProgress) -> ControlFlow<()>>;

/// A loaded causal language model, ready to run. It stays on the device thread that loaded it.
pub trait CausalLm {
    /// Begins to run the sequences as one packed batch, under an adapter if there is one. A GPU only queues the work, so
    /// that the next batch can be prepared while it computes; batches finish in the order in which they began.
    ///
    /// For a sequence of `len` ids the result has `len - 1` entries: entry `t - 1` belongs to the token at position `t`
    /// given all previous ones. The result for a sequence does not depend on the others in the batch.
    ///
    /// # Errors
    /// [`ModelError::OutOfMemory`] if a smaller batch may still fit, [`ModelError::Device`] if the device is lost,
    /// [`ModelError::Forward`] if models of this kind take no adapters. Waiting for the result has the same errors.
    fn begin(&self, sequences: &[&[u32]], adapter: Option<&LoadedAdapter>) -> Result<Pending<BatchStats>, ModelError>;

    /// Runs the sequences without an adapter, and waits for the result.
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<BatchStats, ModelError> {
        self.begin(sequences, None)?.wait()
    }

    /// The same under an adapter.
    fn adapted_stats(&self, sequences: &[&[u32]], adapter: &LoadedAdapter) -> Result<BatchStats, ModelError> {
        self.begin(sequences, Some(adapter))?.wait()
    }

    /// Begins to continue sequences greedily, under an adapter if there is one: with the token of the largest logit and, of
    /// several, of the lowest id. Each continuation has at least one id and at most `most`, and as many as one pass gives by the
    /// draft of its prompt. Which ids these are depends neither on the draft nor on the other prompts.
    ///
    /// # Errors
    /// Those of [`CausalLm::begin`], and [`ModelError::Forward`] if a prompt has no ids, if the logits are not numbers, or if
    /// models of this kind continue no texts.
    fn begin_continuation(
        &self,
        prompts: &[&GreedyPrompt],
        adapter: Option<&LoadedAdapter>,
    ) -> Result<Pending<Vec<Continuation>>, ModelError> {
        let _ = (prompts, adapter);
        Err(ModelError::continues_no_texts())
    }

    /// Has the forward passes watched, if the model streams its layers.
    fn watch(&mut self, watch: LayerWatch) {
        drop(watch);
    }

    /// Asks whether the model can run, where that is not certain: its server may be gone.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if it cannot run now.
    fn probe(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// An adapter on the device and in the form of this model.
    ///
    /// # Errors
    /// [`ModelError::OutOfMemory`] if it does not fit; [`ModelError::Forward`] if models of this kind take no adapters.
    fn load_adapter(&self, adapter: &Adapter) -> Result<LoadedAdapter, ModelError> {
        let _ = adapter;
        Err(ModelError::takes_no_adapters())
    }
}

/// A loaded masked language model, ready to run. It stays on the device thread that loaded it.
pub trait MaskedLm {
    /// Predicts the token at every masked position, each in a separate copy of its sequence, so that masked positions
    /// do not affect each other. The result for a position does not depend on the others in the batch.
    ///
    /// # Errors
    /// As for [`CausalLm::token_stats`]; [`ModelError::Forward`] if ids or positions are outside the model's range.
    fn fill(&self, positions: &[&MaskedPosition]) -> Result<Vec<Filled>, ModelError>;
}

/// A model in memory.
pub enum LoadedModel {
    Causal(Box<dyn CausalLm>),
    Masked(Box<dyn MaskedLm>),
}

impl LoadedModel {
    /// The model, if it is a causal one.
    pub fn causal(self) -> Option<Box<dyn CausalLm>> {
        match self {
            Self::Causal(model) => Some(model),
            Self::Masked(_) => None,
        }
    }
}

/// A result, or the work that a device has queued for it. Dropping it abandons the result and not the work.
pub enum Pending<T> {
    Ready(T),
    /// Waits for the device, and gives the result.
    Queued(Box<dyn FnOnce() -> Result<T, ModelError>>),
}

impl<T: 'static> Pending<T> {
    /// A result that `wait` waits for.
    pub fn queued(wait: impl FnOnce() -> Result<T, ModelError> + 'static) -> Self {
        Self::Queued(Box::new(wait))
    }

    pub fn is_ready(&self) -> bool {
        matches!(self, Self::Ready(_))
    }

    /// The result, as soon as it is there.
    pub fn wait(self) -> Result<T, ModelError> {
        match self {
            Self::Ready(result) => Ok(result),
            Self::Queued(wait) => wait(),
        }
    }

    /// Applies a function to the result: now if it is ready, and otherwise when it is waited for.
    ///
    /// # Errors
    /// Those of the function, if it is called now.
    pub fn then<U>(self, f: impl FnOnce(T) -> Result<U, ModelError> + 'static) -> Result<Pending<U>, ModelError> {
        Ok(match self {
            Self::Ready(result) => Pending::Ready(f(result)?),
            Self::Queued(wait) => Pending::Queued(Box::new(|| f(wait()?))),
        })
    }
}

/// A position in a sequence of ids whose token is predicted from all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaskedPosition {
    /// The original sequence, special tokens included.
    pub ids: Arc<[u32]>,
    /// The index of the position in `ids`.
    pub position: usize,
    pub candidates: Arc<Candidates>,
}

/// The tokens that may be predicted at a masked position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidates {
    /// The id of the mask token, which replaces the token to be predicted.
    pub mask: u32,
    /// True for the ids of candidates; ids beyond the end are not candidates.
    pub allowed: Arc<[bool]>,
    /// The number of predictions to return.
    pub best: usize,
}

/// A model's prediction for a masked position. Probabilities are over its whole output dimension.
#[derive(Clone, Debug, PartialEq)]
pub struct Filled {
    /// The probability of the original token.
    pub p_original: f64,
    /// The most probable candidates with their probabilities, in descending order, ties by ascending id; never the
    /// original token.
    pub best: Vec<(u32, f64)>,
}

impl MaskedPosition {
    /// The ids of the sequence with the mask in place.
    pub fn masked_ids(&self) -> impl Iterator<Item = u32> {
        let masked_id =
            |(position, id): (usize, &u32)| if position == self.position { self.candidates.mask } else { *id };
        self.ids.iter().enumerate().map(masked_id)
    }

    /// Ranks the candidates by the logits of the vocabulary at this position.
    pub fn rank(&self, logits: &[f32]) -> Filled {
        let p = softmax(logits);
        let original = self.ids.get(self.position).map_or(usize::MAX, |id| *id as usize);
        let allowed = |id: &usize| *id != original && self.candidates.allowed.get(*id) == Some(&true);
        let mut ids: Vec<usize> = (0..p.len()).filter(allowed).collect();
        let order = |a: &usize, b: &usize| p[*b].total_cmp(&p[*a]).then(a.cmp(b));
        if self.candidates.best < ids.len() {
            ids.select_nth_unstable_by(self.candidates.best, order);
            ids.truncate(self.candidates.best);
        }
        ids.sort_unstable_by(order);
        Filled {
            p_original: p.get(original).copied().unwrap_or(f64::NAN),
            best: ids.into_iter().map(|id| (id as u32, p[id])).collect(),
        }
    }
}

/// In f64, since a vocabulary has many small terms.
fn softmax(logits: &[f32]) -> Vec<f64> {
    let max = f64::from(logits.iter().copied().fold(f32::NEG_INFINITY, f32::max));
    let mut p: Vec<f64> = logits.iter().map(|logit| (f64::from(*logit) - max).exp()).collect();
    let sum: f64 = p.iter().sum();
    p.iter_mut().for_each(|p| *p /= sum);
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;

    fn halved(n: i32) -> Result<i32, ModelError> {
        if n % 2 == 0 { Ok(n / 2) } else { Err(ModelError::Forward(format!("{n} is odd"))) }
    }

    #[test]
    fn a_function_of_a_result_is_called_when_there_is_one() {
        let pending = Pending::Ready(6).then(halved).unwrap();
        assert!(pending.is_ready());
        assert_eq!(pending.wait().unwrap(), 3);
        assert!(Pending::Ready(3).then(halved).is_err());

        let is_done = Rc::new(Cell::new(false));
        let noted = Rc::clone(&is_done);
        let queued = Pending::queued(move || {
            noted.set(true);
            Ok(6)
        });
        let pending = queued.then(halved).unwrap().then(halved).unwrap();
        assert!(!pending.is_ready() && !is_done.get());
        assert_eq!(pending.wait().unwrap_err().to_string(), "forward pass: 3 is odd");
        assert!(is_done.get());
    }
}
