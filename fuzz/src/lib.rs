//! What the fuzz targets share: a service without a network, model files small enough to be mutated, and a bound on
//! memory.

mod goldens;
mod memory;
mod model;
mod panics;
mod service;

pub use goldens::{Golden, goldens};
pub use memory::bound_memory;
pub use model::{open_and_run, open_and_run_gguf};
pub use panics::allow_panics_of;
pub use service::{Answer, Service, service};

/// The first byte, which chooses what is done with the rest.
#[must_use]
pub fn choice(data: &[u8]) -> Option<(usize, &[u8])> {
    data.split_first().map(|(first, rest)| (usize::from(*first), rest))
}
