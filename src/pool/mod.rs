//! Which models there are, and where each of them stands.
//!
//! A model is declared under an id, when the service starts or while it runs, and from then on a `lifecycle` says where
//! it stands; that module has the table of all transitions, who causes them and who waits for them. Everybody works on the
//! same state, behind one lock:
//!
//! - requests open a model's files ([`Pool::open`]) and hold a lease of it while they have work for it;
//! - people and administrative requests load, unload, add and remove models ([`Pool::load`] and others);
//! - the device threads of the engine look for what they are to load or drop, and write down what became of it.
//!
//! Invariants:
//!
//! - an id names one model at a time: it is free again when no device holds the model and no request uses it; a download that
//!   still runs then is stopped, and what comes of it is ignored;
//! - a model's files are opened anew only while no device holds it and no request has work for it, so the token ids of a
//!   request always belong to the weights that they run through;
//! - the lock is never held while files are read, a model loads or a forward pass runs;
//! - whoever waits is told, also when the service ends.

mod adapter;
mod declaration;
mod error;
mod handle;
mod lifecycle;
mod model;
mod models;
mod open;
mod served;
mod signal;
mod state;

#[cfg(test)]
pub(crate) mod tests;

pub use adapter::{AdapterDeclaration, AdapterSource, AdapterStatus};
pub use declaration::{Declaration, LocatedFiles, Origin, ServedOrigin, adapted_id, base_id};
pub use error::{AdapterError, AddError, Ended, FindError, LoadError, OpenError, UnknownModel, UnloadError};
pub use handle::{ModelStatus, Opener, Pool};
pub(crate) use lifecycle::Lifecycle;
pub use model::{ActivationBytes, Adapted, Loader, LocalModel, Model, ModelInfo};
pub(crate) use model::{largest_batch, working_bytes};
pub(crate) use models::Models;
pub(crate) use signal::Lease;
pub use state::{ModelState, Retry};
