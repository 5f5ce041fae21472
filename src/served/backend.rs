//! Interface of a server of any kind.

use super::description::ServedDescription;
use lm::models::{BatchStats, ModelError};

/// A server that runs a model.
pub trait Backend: Send + Sync {
    /// Returns its description of the model.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`]
    fn describe(&self) -> Result<ServedDescription, ModelError>;

    /// Checks that it runs the model that was opened.
    ///
    /// # Errors
    /// [`ModelError::Unavailable`] if it does not, or does not answer.
    fn check(&self, opened: &ServedDescription) -> Result<(), ModelError>;

    /// Returns true if its answers say which model they are from. Otherwise it is checked before it gets a batch.
    fn names_its_model(&self) -> bool;

    /// The statistics of sequences that it computes as the model of this identity, by sequence.
    fn token_stats(&self, sequences: &[Vec<u32>], identity: &str) -> Result<BatchStats, ModelError>;
}
