//! Loaded models, as the engine runs them.

use super::error::ModelError;
use super::lora::{Adapter, LoadedAdapter};
use super::masked::{Filled, MaskedPosition};
use crate::token_stats::TokenStats;

/// A loaded causal language model, ready to run. It stays on the device thread that loaded it.
pub trait CausalLm {
    /// Runs the sequences as one packed batch.
    ///
    /// For a sequence of `len` ids the result has `len - 1` entries: entry `t - 1` belongs to the token at position `t`
    /// given all previous ones. The result for a sequence does not depend on the others in the batch.
    ///
    /// # Errors
    /// [`ModelError::OutOfMemory`] if a smaller batch may still fit, [`ModelError::Device`] if the device is lost.
    fn token_stats(&self, sequences: &[&[u32]]) -> Result<Vec<Vec<TokenStats>>, ModelError>;

    /// The same under an adapter.
    ///
    /// # Errors
    /// As for [`CausalLm::token_stats`]; [`ModelError::Forward`] if models of this kind take no adapters.
    fn adapted_stats(&self, sequences: &[&[u32]], adapter: &LoadedAdapter) -> Result<Vec<Vec<TokenStats>>, ModelError> {
        let _ = (sequences, adapter);
        Err(ModelError::Forward(NO_ADAPTERS.into()))
    }

    /// An adapter on the device and in the form of this model.
    ///
    /// # Errors
    /// [`ModelError::OutOfMemory`] if it does not fit; [`ModelError::Forward`] if models of this kind take no adapters.
    fn load_adapter(&self, adapter: &Adapter) -> Result<LoadedAdapter, ModelError> {
        let _ = adapter;
        Err(ModelError::Forward(NO_ADAPTERS.into()))
    }
}

const NO_ADAPTERS: &str = "this kind of model takes no adapters";

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
