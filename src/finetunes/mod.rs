//! Fine-tunes: texts that a model has not seen in, a LoRA adapter out, for the method `fsd` and for whoever audits a fine-tune.
//!
//! [`run`] tunes an adapter; the command line calls it. [`FinetuneKind`] runs the jobs of a service. The adapters that
//! they make are in the store, and [`AdapterShelf`] has the pool know them.

mod error;
mod jobs;
mod request;
mod run;
mod shelf;

pub use error::FinetuneError;
pub use jobs::{FinetuneKind, FinetuneReport, FinetuneStep, FinetuneSubject};
pub use request::{DEFAULT_SEED, FEWEST_TEXTS, FinetuneRequest, MOST_BYTES, tuning_texts_fault};
pub use run::{Finetuned, TuningBase, TuningObserver, TuningRun, memory, run};
pub use shelf::{AdapterShelf, RemoveError};
