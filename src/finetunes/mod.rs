//! Fine-tunes: texts that a model has not seen in, a LoRA adapter out, for the method `fsd` and for whoever audits a fine-tune.

mod error;
mod request;
mod run;

pub use error::FinetuneError;
pub use request::{FEWEST_TEXTS, FinetuneRequest};
pub use run::{Finetuned, run};
