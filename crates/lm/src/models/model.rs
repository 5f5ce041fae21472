//! Loaded models, as the engine runs them.

use super::batch::BatchStats;
use super::error::ModelError;
use super::lora::{Adapter, LoadedAdapter};
use super::masked_position::{Filled, MaskedPosition};
use super::pending::Pending;

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
