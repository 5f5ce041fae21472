//! Declaration of a model: what is known before its files are opened.

use super::origin::Origin;
use crate::config::Dtype;

/// A model as the settings, or whoever adds it, declare it.
#[derive(Clone, Debug)]
pub struct Declaration {
    /// The id by which requests name it.
    pub id: String,
    /// Where its files come from.
    pub origin: Origin,
    /// The type that it is to compute in.
    pub dtype: Dtype,
    /// The id of its default reference model.
    pub reference: Option<String>,
    /// True if it is loaded as soon as its files are open, and readiness waits for it; otherwise the first request loads it. An
    /// eager model is never evicted.
    pub eager: bool,
    /// True if it is never evicted once it is loaded.
    pub pinned: bool,
    /// The devices that may hold it, as indexes into those of the engine. Several hold replicas that share one queue.
    pub devices: Vec<usize>,
}

impl Declaration {
    /// Returns true if it stays in memory when another model needs room.
    pub fn stays(&self) -> bool {
        self.eager || self.pinned
    }
}
